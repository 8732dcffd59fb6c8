#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/make/make.hpp"

namespace troupe::env {

class PoolEngine;

/// Which threads may play an environment. `bound`: always the same one, as rendering requires (a GL
/// context belongs to a thread). `shared`: any thread; an idle one takes work from the others.
/// `automatic`: bound if an observation contains pictures (uint8), otherwise shared.
enum class PoolThreads : std::uint8_t { automatic, shared, bound };

struct PoolOptions {
  int environments = 1; // 1 to 65536

  /// Number of threads that play, 1 to 1024 and at most one per environment. With `caller_plays`
  /// the thread that calls reset(), step() or receive() is one of them (with 1, no thread is
  /// started).
  int threads = 1;
  bool caller_plays = true;
  PoolThreads binding = PoolThreads::automatic;

  std::uint64_t seed = 1;
  /// Returns the seed of an episode (0, 1, …) of an environment. Empty: derived from `seed`. It
  /// must be a pure function; any thread calls it.
  std::function<std::uint64_t(int environment, std::uint64_t episode)> episode_seed{};

  /// Whether each environment has a spare, in which the next episode begins ahead of time. The end
  /// of an episode then causes no delay, for twice the memory. Refused if the environments have a
  /// lasting state (Environment::save_lasting_state). Empty: yes with more than one shared thread
  /// if episodes depend only on their seed, otherwise no.
  std::optional<bool> spares{};

  /// How many consecutive episodes of an environment may fail; one more takes it out of service
  /// until it is reset.
  int failure_budget = 3;
};

/// `failed`: the environment threw, and error() returns the message. The row is a last step with
/// reward 0, discount 1 and zero observations; it must not be used for learning. The next step
/// begins a new episode. `out_of_service`: the same, but the failure budget is exhausted, and only
/// reset() or send_reset() begins a new episode.
enum class RowStatus : std::uint8_t { ok, failed, out_of_service };

/// The caller's memory for results, one row each.
struct PoolBatch {
  std::span<std::byte> observations; // [rows, spec().observation_bytes()]
  std::span<double> rewards;
  std::span<double> discounts;
  std::span<StepType> step_types;
  std::span<RowStatus> statuses;
  std::span<std::int32_t> environments;
  std::span<std::int64_t> episode_steps; // in the episode so far; on the last step its length
  std::span<double> episode_returns;     // sum of the episode's rewards so far

  std::size_t rows() const { return rewards.size(); }
};

/// Owns the memory of a batch.
class PoolRows {
public:
  PoolRows(const EnvironmentSpec& spec, std::size_t rows);
  PoolBatch batch();
  std::span<const std::byte> observation(std::size_t row) const;

  std::size_t observation_bytes;
  std::vector<std::byte> observations;
  std::vector<double> rewards;
  std::vector<double> discounts;
  std::vector<StepType> step_types;
  std::vector<RowStatus> statuses;
  std::vector<std::int32_t> environments;
  std::vector<std::int64_t> episode_steps;
  std::vector<double> episode_returns;
};

/// Plays many environments on several threads. As in dm_env, the step after a last step is the
/// reset: its action is ignored and its result is the first step of the next episode.
///
/// Synchronous mode: reset(), then step() for all environments at once; row i is environment i, and
/// observations are written into the caller's rows. Asynchronous mode: send() actions for some,
/// then receive() the first results, in any order; each observation is copied once, unless
/// observe_in() has given every environment a destination. The two modes must not be mixed while a
/// request is in flight.
///
/// Results depend only on the episodes' seeds and the actions, never on the number of threads or
/// their order. An environment that throws, receives an invalid action (a number that is not
/// finite, a choice that is not one of its whole numbers), or returns a reward that is not finite
/// fails alone: its row reports the failure and the others continue.
///
/// Only one thread may call; if environments are bound and the caller plays, always the same one.
/// Steps neither allocate nor lock. A reset delays only callers that wait for its environment, and
/// none while there is a spare. Throws std::invalid_argument on wrong sizes, on environments that
/// do not exist or are in flight, and on actions for one that is out of service; the pool is then
/// unchanged.
class EnvironmentPool {
public:
  using Clock = std::chrono::steady_clock;
  using Make = std::function<std::unique_ptr<Environment>(int environment)>;

  /// Calls `make` for every environment and spare on this thread. Their specs must be equal.
  EnvironmentPool(const PoolOptions& options, const Make& make);
  EnvironmentPool(const PoolOptions& options, const EnvironmentConfig& config);
  ~EnvironmentPool();
  EnvironmentPool(const EnvironmentPool&) = delete;
  EnvironmentPool& operator=(const EnvironmentPool&) = delete;

  const EnvironmentSpec& spec() const;
  int environments() const;
  bool bound() const;
  bool spares() const;

  /// From now on environment i writes its observation of spec().observation_bytes() to places[i],
  /// and the observations of batches are not used (they may be empty). Nothing is copied. The
  /// pointers are read when a reset or step of the environment is requested; the caller may
  /// exchange them in between. An empty span restores the default. Throws std::invalid_argument on
  /// a wrong number of places, or while a request is in flight.
  void observe_in(std::span<std::byte* const> places);

  /// From now on the episodes of environments[i] depend only on seeds[i]: the next one uses that
  /// seed, later ones use seeds derived from it. Throws std::invalid_argument while a request is in
  /// flight, and std::runtime_error if the reset of a spare takes longer than 60 s.
  void seed(std::span<const std::int32_t> environments, std::span<const std::uint64_t> seeds);

  /// Begins new episodes in `environments`, whatever their state; one that is out of service
  /// returns to service with its whole failure budget. Returns false if the deadline passes first;
  /// then finish() continues to wait, and the rows must stay in place until it returns true.
  bool reset(std::span<const std::int32_t> environments, const PoolBatch& all,
             Clock::time_point deadline);
  /// Takes a step in every environment in service; actions are [environments, action size].
  bool step(std::span<const double> actions, const PoolBatch& all, Clock::time_point deadline);
  bool step(std::span<const float> actions, const PoolBatch& all, Clock::time_point deadline);
  bool finish(Clock::time_point deadline);

  void send_reset(std::span<const std::int32_t> environments);
  void send(std::span<const std::int32_t> environments, std::span<const double> actions);
  void send(std::span<const std::int32_t> environments, std::span<const float> actions);
  /// Receives the first batch.rows() results. Returns false, with nothing received, if the deadline
  /// passes first.
  bool receive(const PoolBatch& batch, Clock::time_point deadline);
  std::size_t in_flight() const; // requests sent whose results were not yet received

  /// The message of the environment's last failure, or "". Not allowed while it is in flight.
  const std::string& error(int environment) const;
  bool in_service(int environment) const;
  /// For renderers: the physics that the environment simulates at present, or nullptr. It may
  /// change with the next step or reset. Not allowed while the environment is in flight.
  Physics* physics(int environment);

  /// Saves or restores the complete state, for a pool with the same options. Both throw
  /// std::invalid_argument while a request is in flight. load_state() also throws it if the bytes
  /// do not fit; the pool must then be loaded again or reset.
  void save_state(std::vector<std::byte>& out) const;
  std::span<const std::byte> load_state(std::span<const std::byte> in);

private:
  template <typename T>
  void put_actions(std::span<const std::int32_t> environments, std::span<const T> actions);
  template <typename T>
  void send_actions(std::span<const std::int32_t> environments, std::span<const T> actions);
  template <typename T>
  bool step_all(std::span<const T> actions, const PoolBatch& all, Clock::time_point deadline);
  bool play_in_place(std::span<const std::int32_t> environments, const PoolBatch& all,
                     Clock::time_point deadline);
  enum class Request : std::uint8_t { step, reset };
  void check_environments(std::span<const std::int32_t> environments, Request request);
  void end_episode(std::size_t environment);
  void check_batch(const PoolBatch& batch) const;
  void check_nothing_in_flight(const char* what) const;
  void direct(std::size_t environment, std::byte* otherwise);
  void write_row(const PoolBatch& batch, std::size_t row, std::int32_t environment);
  void check_exists(int environment) const;
  void check_here(int environment) const; // exists and is not in flight

  std::unique_ptr<PoolEngine> engine_;
  std::vector<std::uint8_t> on_its_way_;
  std::vector<std::uint8_t> out_of_service_;
  std::size_t in_flight_ = 0;
  std::vector<std::int32_t> in_service_; // environments of the present step()
  std::size_t waited_for_ = 0;           // rows of an unfinished reset() or step()
  PoolBatch in_place_;
  std::span<std::byte* const> places_; // destination of each environment's observation, if given
};

} // namespace troupe::env
