#pragma once

#include <cstdint>

#include "env/spec.hpp"

namespace troupe::replay {

struct Signature;

/// What a table stores and how its n-step transitions are made. Steps are stored once; an
/// observation is the last `stack` frames of one episode (the first frame repeated where the
/// episode is younger), and a transition starts at every step:
///   reward   = sum_{k<m} discount^k (prod_{j<k} d_j) r_k,   discount = prod_{k<m} discount * d_k,
///   m = min(n_step, steps left)
/// with the environment's own d_k. m < n_step only at the end of an episode; windows never cross
/// episodes.
struct TransitionSpec {
  env::ArraySpec frame; // one frame: uint8 [channels, height, width] or float32 [n]
  int stack = 1;
  int action_size = 0;
  int n_step = 1;
  double discount = 0.99;

  env::ArraySpec observation() const; // [stack*channels, height, width] or [stack*n]
  /// The columns of its time steps: the frame that is seen and the action, reward and discount of
  /// the step that led to it (0, 0, 1 in the first row of an episode); see TransitionColumn.
  operator Signature() const;
  bool operator==(const TransitionSpec&) const = default;
};

} // namespace troupe::replay
