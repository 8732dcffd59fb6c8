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
#include "env/make.hpp"

namespace troupe::env {

class PoolEngine;

/// Which threads may play an environment. `bound`: always the same one, as rendering demands (a GL
/// context belongs to a thread). `shared`: any; an idle thread takes from the others. `automatic`:
/// bound when an observation is made of pictures (uint8), shared otherwise.
enum class PoolThreads : std::uint8_t { automatic, shared, bound };

struct PoolOptions {
  int environments = 1; // 1 to 65536

  /// Threads that play, 1 to 1024 and at most one per environment. With `caller_plays` the thread
  /// in reset(), step() and receive() is one of them (1: no thread is started at all).
  int threads = 1;
  bool caller_plays = true;
  PoolThreads binding = PoolThreads::automatic;
  std::vector<int> cpus{}; // one for each thread that is started; empty: not pinned

  std::uint64_t seed = 1;
  /// Seed of an episode (0, 1, …) of an environment; empty: split from `seed`. Pure, any thread.
  std::function<std::uint64_t(int environment, std::uint64_t episode)> episode_seed{};

  /// A second environment behind each, in which the next episode begins ahead of time: the end of
  /// an episode then costs nothing, for twice the memory. Episodes must be functions of their seed
  /// alone. Empty: yes when threads are shared and more than one, no otherwise.
  std::optional<bool> spares{};

  /// Episodes of an environment in a row that may fail; after one more it is out of service.
  int failure_budget = 3;
};

/// `failed`: the environment threw, error() has its words; the row is a last step with reward 0,
/// discount 1 and zeros for observations, to be dropped with care for what it ends; the next step
/// begins a new episode. `out_of_service`: the same, and the budget is used up.
enum class RowStatus : std::uint8_t { ok, failed, out_of_service };

/// Where results go: memory of the caller, one row per result.
struct PoolBatch {
  std::span<std::byte> observations; // [rows, spec().observation_bytes()]
  std::span<double> rewards;
  std::span<double> discounts;
  std::span<StepType> step_types;
  std::span<RowStatus> statuses;
  std::span<std::int32_t> environments;
  std::span<std::int64_t> episode_steps; // of the episode so far; its length on the last step
  std::span<double> episode_returns;     // sum of its rewards so far

  std::size_t rows() const { return rewards.size(); }
};

/// Memory for a batch.
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

/// Plays many environments on several threads. As in dm_env the step after a last step is the
/// reset: its action is ignored and its result is the first step of the next episode.
///
/// Synchronous: reset(), then step() for all at once; row i is environment i, observations are
/// written straight into the caller's rows. Asynchronous: send() for some, receive() the first ones
/// that are ready, in any order; which they are is only known then, so each observation is copied
/// once, unless observe_in() has given each environment a place. The two do not mix while something
/// is on its way.
///
/// What an environment gives depends on its episodes' seeds and its actions alone, never on the
/// number of threads or their order. An environment that throws, or is given an action that is not
/// finite, or returns a reward that is not, fails alone: its row says so and the others go on.
///
/// One thread calls, always the same one when environments are bound and the caller plays. No
/// allocation and no lock per step. A reset is never waited for while its environment has a spare,
/// and otherwise only by those who wait for that environment. Throws std::invalid_argument on
/// sizes, environments that do not exist, are on their way already or are out of service; nothing
/// has happened then.
class EnvironmentPool {
public:
  using Clock = std::chrono::steady_clock;
  using Make = std::function<std::unique_ptr<Environment>(int environment)>;

  /// Calls `make` for every environment and every spare, on this thread; they must be alike.
  EnvironmentPool(const PoolOptions& options, const Make& make);
  EnvironmentPool(const PoolOptions& options, const EnvironmentConfig& config);
  ~EnvironmentPool();
  EnvironmentPool(const EnvironmentPool&) = delete;
  EnvironmentPool& operator=(const EnvironmentPool&) = delete;

  const EnvironmentSpec& spec() const;
  int environments() const;
  bool bound() const;
  bool spares() const;

  /// From now on environment i writes its observation of spec().observation_bytes() to places[i]
  /// and no batch's observations are used (they may be empty); nothing is copied. The pointers are
  /// read when a reset or step of the environment is asked for, so that the caller may exchange
  /// them in between; the memory of both stays while they are used. Empty: as before. Throws
  /// std::invalid_argument on another number of places, or while something is on its way.
  void observe_in(std::span<std::byte* const> places);

  /// New episodes in `environments`, whatever they were doing. False when the deadline passes
  /// first: then finish() goes on waiting, and the rows must stay where they are until it is true.
  bool reset(std::span<const std::int32_t> environments, const PoolBatch& all,
             Clock::time_point deadline);
  /// A step in every environment that is in service; actions are [environments, action size].
  bool step(std::span<const double> actions, const PoolBatch& all, Clock::time_point deadline);
  bool step(std::span<const float> actions, const PoolBatch& all, Clock::time_point deadline);
  bool finish(Clock::time_point deadline);

  void send_reset(std::span<const std::int32_t> environments);
  void send(std::span<const std::int32_t> environments, std::span<const double> actions);
  void send(std::span<const std::int32_t> environments, std::span<const float> actions);
  /// The first batch.rows() results. False, and nothing received, when the deadline passes first.
  bool receive(const PoolBatch& batch, Clock::time_point deadline);
  std::size_t in_flight() const; // sent and not yet received

  /// What the environment's last failure said; "" when it never failed. Not while it is on its way.
  const std::string& error(int environment) const;
  bool in_service(int environment) const;

  /// Everything the future depends on, for a pool of the same options; nothing may be on its way.
  /// Throws std::invalid_argument when it is, or when the bytes do not fit; after the latter the
  /// pool has to be loaded or reset again. Observations already received are the caller's to keep.
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
  void check_environments(std::span<const std::int32_t> environments);
  void check_batch(const PoolBatch& batch) const;
  void check_nothing_in_flight(const char* what) const;
  void direct(std::size_t environment, std::byte* otherwise);
  void write_row(const PoolBatch& batch, std::size_t row, std::int32_t environment);
  void check_exists(int environment) const;

  std::unique_ptr<PoolEngine> engine_;
  std::vector<std::uint8_t> on_its_way_;
  std::vector<std::uint8_t> out_of_service_;
  std::size_t in_flight_ = 0;
  std::vector<std::int32_t> in_service_; // of the present step()
  std::size_t waited_for_ = 0;           // rows of an unfinished reset() or step()
  PoolBatch in_place_;
  std::span<std::byte* const> places_; // of each environment's observation, where given
};

} // namespace troupe::env
