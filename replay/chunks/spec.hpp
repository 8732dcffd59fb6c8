#pragma once

#include <cstdint>
#include <vector>

#include "env/spec.hpp"

namespace troupe::replay {

struct Signature;

// clang-format off
/// What a table stores and how its n-step transitions are made. Steps are stored once. An observation
/// is the last `stack` frames of one episode (in a younger episode the first frame is repeated), and a
/// transition starts at every step:
///   reward   = sum_{k<m} discount^k (prod_{j<k} d_j) r_k,   discount = prod_{k<m} discount * d_k,
///   m = min(n_step, steps left in the episode)
/// with the environment's discounts d_k. Windows never cross episodes.
// clang-format on
struct TransitionSpec {
  env::ArraySpec frame; // one frame: uint8 [channels, height, width] or float32 [n]
  int stack = 1;
  int action_size = 0;
  /// [action_size] n of a number that is one of the choices 0 to n - 1, 0: continuous. Empty: all
  /// are continuous.
  std::vector<std::int64_t> action_choices = {};
  int n_step = 1;
  double discount = 0.99;

  /// n if the number is a choice, else 0.
  std::int64_t choices_of(std::size_t i) const {
    return action_choices.empty() ? 0 : action_choices[i];
  }
  env::ArraySpec observation() const; // [stack*channels, height, width] or [stack*n]
  /// The columns of its time steps: the frame, and the action, reward and discount of the step that
  /// led to it (0, 0, 1 in the first row of an episode); see TransitionColumn.
  operator Signature() const;
  bool operator==(const TransitionSpec&) const = default;
};

} // namespace troupe::replay
