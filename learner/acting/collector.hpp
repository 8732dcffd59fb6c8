#pragma once

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

/// splitmix64 of a seed and a path of numbers: derives independent seeds for all random generators
/// from the seed of the run.
std::uint64_t split_seed(std::uint64_t seed, std::initializer_list<std::uint64_t> path);

struct CollectorConfig {
  std::uint64_t seed = 1;
  std::uint64_t incarnation = 0; // restarts of this collector: gives new writers and seeds
  std::int64_t first_lane = 0;   // number of its first environment in the whole run
  std::int64_t total_lanes = 1;  // environments in the whole run
  std::int64_t steps_before = 0; // agent steps of earlier incarnations, per environment
  std::int64_t random_steps = 0; // agent steps over all lanes with uniformly random actions
  int environments = 1;          // lanes of this collector
  int threads = 1;               // that step them, including the caller; see env::PoolOptions
  std::optional<bool> spares{};
};

struct EpisodeEnd {
  double episode_return = 0;
  std::int64_t environment_steps = 0;
};

/// Plays a pool of environments with one policy inference per step of all of them and writes the
/// transitions. Environments that do not stack frames write each observation directly into its
/// replay chunk, where inference reads it, if their arrays lie there as in a row (a frame of a
/// multiple of 8 bytes, and one vector at most); otherwise the newest frame is copied there. Sends
/// no message. Always on the same thread; what it writes does not depend on the number of threads.
/// If an environment fails, its episode ends without a last step and the next one begins.
class Collector {
public:
  /// Throws std::invalid_argument if the environments differ or do not fit the transitions.
  Collector(const CollectorConfig& config, const env::EnvironmentPool::Make& make,
            std::unique_ptr<Policy> policy, const replay::TransitionSpec& transitions);
  ~Collector();

  /// The latest call wins; `version`: the updates applied to these parameters.
  void load_parameters(std::uint64_t version, std::span<const float> parameters);
  std::uint64_t parameter_version() const { return version_; }
  /// The next step is the first of every environment's next sequence; unfinished ones are dropped.
  void restart_sequences();
  bool has_parameters() const { return loaded_; }
  bool needs_policy() const; // the next step is not a random one

  /// The two halves of one agent step in every lane: choose the actions (after resetting
  /// environments whose episode ended), then step the environments. Throws std::runtime_error
  /// naming the lane if the policy's action is not finite, with an environment's message if it
  /// fails in every episode, and if an environment does not return within a minute.
  void choose_actions();
  void step_environments();
  /// [lanes, action size], as last chosen.
  std::span<const float> actions() const { return actions_; }

  int lanes() const;
  /// What the lane's environment simulates until the next step, or nullptr.
  env::Physics* physics(int lane);
  /// The newest frame that the policy got or will get, until the next step; empty before the first.
  std::span<const std::byte> newest_frame(int lane) const;
  /// What lane `lane` wrote since the last call; nullptr if nothing.
  replay::InsertionPtr take(int lane);
  std::vector<EpisodeEnd> take_episodes();  // ended since the last call
  std::vector<std::string> take_failures(); // of environments; the newest few

  /// The run now has `total_lanes` environments, which made `run_steps` agent steps in total;
  /// random steps and exploration depend on both.
  void set_global_progress(std::int64_t run_steps, std::int64_t total_lanes);

  std::int64_t agent_steps() const { return agent_steps_; } // over this collector's lanes
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
  std::vector<std::byte*> places_;             // [lanes] of the next frames
  std::vector<const std::byte*> frames_;       // [lanes, stack]
  std::vector<const std::byte*> vectors_;      // [lanes, vectors]
  std::vector<std::byte*> extras_;             // [extras, lanes]
  std::vector<float> states_;                  // [lanes, state size] of a recurrent policy
  std::vector<std::int32_t> beginning_;        // lanes without an episode
  std::vector<float> actions_;                 // [lanes, action size]
  std::vector<float> played_;                  // the same, within [-1, 1]
  std::vector<EpisodeEnd> episodes_;
  std::vector<std::string> failures_;
  std::uint64_t version_ = 0;
  bool loaded_ = false;
  std::int64_t agent_steps_ = 0;
  std::int64_t environment_steps_ = 0;
};

} // namespace troupe::learner
