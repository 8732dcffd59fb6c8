#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "env/spec.hpp"

namespace troupe::replay {

struct Signature;

/// Which row of the episode gives a relabelled item its goal (hindsight experience replay,
/// Andrychowicz et al. 2017), uniformly chosen. `final`: the last row, so one goal is enough.
/// `future`: any row after the item's first one (without its history); the last if there is none.
/// `episode`: any row.
enum class GoalStrategy : std::uint8_t { final, future, episode };

/// "final", "future" or "episode". Throws std::invalid_argument on another name.
GoalStrategy goal_strategy_named(const std::string& name);
const char* goal_strategy_name(GoalStrategy strategy);

/// At the end of an episode each of its transitions is stored `goals` more times, relabelled with
/// goals that the episode reached. Transitions then have one step and single frames.
struct Hindsight {
  int goals = 0; // for each transition; 0: none
  GoalStrategy strategy = GoalStrategy::future;
  std::int64_t achieved = 0; // places of `size` numbers in a frame, as in env::GoalSpec
  std::int64_t desired = 0;
  std::int64_t size = 0;
  std::int64_t episode_steps = 0; // of the longest episode
  bool operator==(const Hindsight&) const = default;
};

// clang-format off
/// What a table stores and how its items are made: n-step transitions, or sequences. Steps are stored
/// once. An observation is the last `stack` frames of one episode (in a younger episode the first frame
/// is repeated). A transition starts at every step, and its window never crosses episodes:
///   reward   = sum_{k<m} discount^k (prod_{j<k} d_j) r_k,   discount = prod_{k<m} discount * d_k,
///   m = min(n_step, steps left in the episode)
/// with the environment's discounts d_k. A sequence is `sequence_steps` + 1 consecutive rows of one
/// environment with whatever episodes they belong to; a row that is the first of its episode says so,
/// and no step led to it.
// clang-format on
struct TransitionSpec {
  env::ArraySpec frame; // one frame: uint8 [channels, height, width] or float32 [n]
  /// Float32 arrays of the newest row that an observation has beside its frames.
  std::vector<env::ArraySpec> vectors = {};
  int stack = 1;
  int action_size = 0;
  /// [action_size] n of a number that is one of the choices 0 to n - 1, 0: continuous. Empty: all
  /// are continuous.
  std::vector<std::int64_t> action_choices = {};
  int n_step = 1;
  double discount = 0.99;
  std::int64_t sequence_steps = 0;  // of an item; 0: items are transitions
  std::int64_t sequence_period = 1; // steps from a sequence's beginning to that of the next
  /// Of sequences: what the policy adds to each step. A row has that of the step that led to it,
  /// zeros in the first row of an episode.
  std::vector<env::ArraySpec> extras = {};

  Hindsight hindsight = {}; // of transitions

  bool has_hindsight() const { return hindsight.goals > 0; }
  bool is_sequence() const { return sequence_steps > 0; }
  /// n if the number is a choice, else 0.
  std::int64_t choices_of(std::size_t i) const {
    return action_choices.empty() ? 0 : action_choices[i];
  }
  env::ArraySpec observation() const; // [stack*channels, height, width] or [stack*n]
  /// Bytes of the frames and the vectors as an environment writes them: each at a multiple of 8.
  std::size_t observation_bytes() const;
  std::size_t vector_offset(std::size_t index) const; // in these bytes
  std::size_t vector_elements() const;                // of all vectors
  /// The columns of its time steps: the frame and the vectors, and the action, reward and discount
  /// of the step that led to it (0, 0, 1 in the first row of an episode); of sequences also whether
  /// the row is the first of an episode, and the extras; with hindsight, which goes without
  /// vectors, also the goal, and the columns of relabelled transitions (hindsight_columns). See
  /// TransitionColumn.
  operator Signature() const;
  bool operator==(const TransitionSpec&) const = default;
};

/// The name of a vector in a batch, beside the frames called `observation`.
std::string vector_name(const std::string& observation, const env::ArraySpec& vector);

} // namespace troupe::replay
