#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "env/pool/environment_pool.hpp"
#include "learner/acting/policy.hpp"
#include "replay/writers/hindsight_transitions.hpp"

namespace troupe::learner {

/// Derives a seed from a seed and a path of numbers, with splitmix64. All random generators of a
/// run get independent seeds from the run's seed this way.
std::uint64_t split_seed(std::uint64_t seed, std::initializer_list<std::uint64_t> path);

struct CollectorConfig {
  std::uint64_t seed = 1;
  std::uint64_t incarnation = 0; // number of restarts; changes writer ids and seeds
  std::int64_t first_lane = 0;   // index of its first environment in the whole run
  std::int64_t total_lanes = 1;  // environments in the whole run
  std::int64_t steps_before = 0; // agent steps of earlier incarnations, per environment
  std::int64_t random_steps = 0; // agent steps with uniformly random actions, over all lanes
  int environments = 1;          // lanes of this collector
  int threads = 1;               // including the caller; see env::PoolOptions
  /// For a step or reset of all environments, without the deadlines of their own.
  std::chrono::milliseconds time_limit{60'000};
  /// An environment's own deadlines in a step or reset.
  std::chrono::milliseconds own_deadlines{0};
  std::optional<bool> spares{};
};

/// How long a step or reset of all environments may take: a thread plays its environments in turn.
inline std::chrono::milliseconds batch_limit(const CollectorConfig& config) {
  const int turns = (config.environments + config.threads - 1) / config.threads;
  return config.time_limit + config.own_deadlines * turns;
}

struct EpisodeEnd {
  double episode_return = 0;
  std::int64_t environment_steps = 0;
};

/// Steps a pool of environments, with one batched policy inference per step, and writes the
/// transitions. An environment that does not stack frames writes each observation directly into its
/// replay chunk, where inference reads it. This requires that the arrays are contiguous in the
/// chunk: the size of the frame is a multiple of 8 bytes and there is at most one vector. Otherwise
/// the newest frame is copied into the chunk.
/// A collector sends no messages. All calls must come from the same thread; what it writes does not
/// depend on the number of threads. If an environment fails, its episode ends without a last step
/// and the next episode begins.
class Collector {
public:
  /// Throws std::invalid_argument if the environments differ or do not fit the transitions.
  Collector(const CollectorConfig& config, const env::EnvironmentPool::Make& make,
            std::unique_ptr<Policy> policy, const replay::TransitionSpec& transitions);
  ~Collector();

  /// Replaces the parameters. `version` is the number of updates applied to them.
  void load_parameters(std::uint64_t version, std::span<const float> parameters);
  std::uint64_t parameter_version() const { return version_; }
  /// Makes the next step of every environment the first of a new sequence and drops unfinished
  /// sequences.
  void restart_sequences();
  bool has_parameters() const { return loaded_; }
  bool needs_policy() const; // false if the next step is random

  /// The two halves of one agent step in every lane. choose_actions() resets the environments whose
  /// episode has ended and chooses the actions; step_environments() steps the environments. They
  /// throw std::runtime_error if the policy's action is not finite (naming the lane), if an
  /// environment fails in every episode (with its message), and if the environments do not return
  /// within batch_limit().
  void choose_actions();
  void step_environments();
  /// The most recently chosen actions, [lanes, action size].
  std::span<const float> actions() const { return actions_; }

  int lanes() const;
  /// The physics of the lane's environment, valid until the next step, or nullptr if it has none.
  env::Physics* physics(int lane);
  /// The newest frame of the lane's observation, valid until the next step; empty before the first
  /// step.
  std::span<const std::byte> newest_frame(int lane) const;
  /// Returns what lane `lane` has written since the last call, or nullptr if it wrote nothing.
  replay::InsertionPtr take(int lane);
  std::vector<EpisodeEnd> take_episodes();  // since the last call
  std::vector<std::string> take_failures(); // the newest failures of environments

  /// Tells the collector that the run now has `total_lanes` environments, which have made
  /// `run_steps` agent steps in total. Random steps and exploration depend on both.
  void set_global_progress(std::int64_t run_steps, std::int64_t total_lanes);

  /// Over this collector's lanes. The head grants agent steps, each of which counts as
  /// spec().action_repeat environment steps, also if it failed or ended its episode early.
  std::int64_t agent_steps() const { return agent_steps_; }
  std::int64_t environment_steps() const { return environment_steps_; }

  void save_state(std::vector<std::byte>& out) const;
  std::span<const std::byte> load_state(std::span<const std::byte> in);

private:
  struct EnvironmentSlot;
  void begin_episodes();
  void begin_episode(std::size_t lane);
  void place_observation(std::size_t lane);
  std::byte* next_place(std::size_t lane);
  void begin_extras(bool random);
  void note_probabilities(bool random, const Observations& observations,
                          const Exploration& exploration);
  std::span<const float> played();
  void note_failure(std::size_t lane);
  std::int64_t steps_of_run() const;

  CollectorConfig config_;
  std::unique_ptr<Policy> policy_;
  replay::TransitionSpec transitions_;
  std::vector<EnvironmentSlot> slots_;
  std::vector<ActingRandom*> randoms_;         // [lanes]
  std::vector<std::uint8_t> first_;            // [lanes] 1: the next step is an episode's first
  std::unique_ptr<env::EnvironmentPool> pool_; // environment i plays lane i
  std::unique_ptr<env::PoolRows> rows_;        // [lanes]
  std::vector<std::byte*> places_;             // [lanes] where the next frames are written
  std::vector<const std::byte*> frames_;       // [lanes, stack]
  std::vector<const std::byte*> vectors_;      // [lanes, vectors]
  std::vector<std::byte*> extras_;             // [extras, lanes]
  std::vector<float> states_;                  // [lanes, state size], for recurrent policies
  std::vector<std::int32_t> beginning_;        // lanes that begin an episode
  std::vector<float> actions_;                 // [lanes, action size]
  std::vector<float> played_;                  // actions_ clipped to [-1, 1]
  std::vector<EpisodeEnd> episodes_;
  std::vector<std::string> failures_;
  std::uint64_t version_ = 0;
  bool loaded_ = false;
  std::int64_t agent_steps_ = 0;
  std::int64_t environment_steps_ = 0;
};

} // namespace troupe::learner
