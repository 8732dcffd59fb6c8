#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "env/spec.hpp"

namespace troupe::replay {

struct Signature;

/// The rows of the episode from which the goal of a relabelled item is drawn uniformly (hindsight
/// experience replay, Andrychowicz et al. 2017). `final`: only the last row, so one goal is enough.
/// `future`: the rows after the item's first one (without its history), or the last row if there
/// are none. `episode`: all rows.
enum class GoalStrategy : std::uint8_t { final, future, episode };

/// Parses "final", "future" or "episode". Throws std::invalid_argument on another name.
GoalStrategy goal_strategy_named(const std::string& name);
const char* goal_strategy_name(GoalStrategy strategy);

/// Configures hindsight: at the end of an episode each of its transitions is stored `goals` more
/// times, relabelled with goals that the episode reached. Transitions then have one step and single
/// frames.
struct Hindsight {
  int goals = 0; // per transition; 0: no hindsight
  GoalStrategy strategy = GoalStrategy::future;
  std::int64_t achieved = 0; // positions of `size` numbers in a frame, as in env::GoalSpec
  std::int64_t desired = 0;
  std::int64_t size = 0;
  std::int64_t episode_steps = 0; // of the longest episode
  bool operator==(const Hindsight&) const = default;
};

// clang-format off
/// Says what a table stores and how its items are made: n-step transitions or sequences. Each step
/// is stored once. An observation consists of the last `stack` frames of one episode; if there are
/// fewer, the first frame is repeated. A transition starts at every step and stays in its episode:
///   reward   = sum_{k<m} discount^k (prod_{j<k} d_j) r_k,   discount = prod_{k<m} discount * d_k,
///   m = min(n_step, steps left in the episode)
/// with the environment's discounts d_k. A sequence is `sequence_steps` + 1 consecutive rows of one
/// environment and may cross episodes. The first row of each episode is marked, because no step led
/// to it. With `whole_episodes`, sequences begin at rows 0, `sequence_steps`, … of each episode and
/// end with it: after its last row, a sequence is filled up with rows of zeros that are marked like
/// first ones. An episode of at most `sequence_steps` steps is then one sequence.
// clang-format on
struct TransitionSpec {
  env::ArraySpec frame; // one frame: uint8 [channels, height, width] or float32 [n]
  /// Float32 arrays that an observation contains in addition to its frames; from its newest row
  /// only.
  std::vector<env::ArraySpec> vectors = {};
  int stack = 1;
  int action_size = 0;
  /// [action_size] n for a discrete number with the choices 0 to n - 1, 0 for a continuous one.
  /// Empty: all are continuous.
  std::vector<std::int64_t> action_choices = {};
  int n_step = 1;
  double discount = 0.99;
  std::int64_t sequence_steps = 0;  // steps of a sequence; 0: items are transitions
  std::int64_t sequence_period = 1; // steps from the beginning of one sequence to the next
  bool whole_episodes = false;      // sequences only; sequence_period is then not used
  /// Sequences only: arrays that the policy adds to each step. A row contains the extras of the
  /// step that led to it, or zeros if it is the first of an episode.
  std::vector<env::ArraySpec> extras = {};
  /// Transitions without hindsight only: each row also has the running return of its episode, g =
  /// discount * g + r (0 in the first row). A transition has the one after its first step.
  bool running_return = false;

  Hindsight hindsight = {}; // transitions only

  bool has_hindsight() const { return hindsight.goals > 0; }
  bool is_sequence() const { return sequence_steps > 0; }
  /// Returns n if number `i` of an action is discrete with n choices, 0 if it is continuous.
  std::int64_t choices_of(std::size_t i) const {
    return action_choices.empty() ? 0 : action_choices[i];
  }
  env::ArraySpec observation() const; // [stack*channels, height, width] or [stack*n]
  /// Bytes of the frames and vectors as an environment writes them, each at a multiple of 8.
  std::size_t observation_bytes() const;
  std::size_t vector_offset(std::size_t index) const; // offset in observation_bytes()
  std::size_t vector_elements() const;                // sum over all vectors
  /// Returns the signature of the time steps. A row consists of the frame, the vectors, and the
  /// action, reward and discount of the step that led to it (0, 0, 1 in the first row of an
  /// episode). Sequences also have the extras and a column that marks the first row of an episode.
  /// Transitions may also have the running return. With hindsight, which excludes vectors, there
  /// are also the goal and the columns of relabelled transitions (hindsight_columns). See
  /// TransitionColumn.
  operator Signature() const;
  bool operator==(const TransitionSpec&) const = default;
};

/// Returns the name of a vector in a batch whose frames are called `observation`.
std::string vector_name(const std::string& observation, const env::ArraySpec& vector);

} // namespace troupe::replay
