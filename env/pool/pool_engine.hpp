#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "env/pool/doorbell.hpp"
#include "env/pool/environment_pool.hpp"
#include "env/pool/rings.hpp"

namespace troupe::env {

enum class PoolPhase : std::uint8_t { unstarted, playing, ended, out_of_service };

/// An environment and its state. It belongs to the caller, except from the push into a work ring to
/// the push into a done ring, when it belongs to the thread that plays it. The members from `spare`
/// on belong to the thread that set SpareState::preparing or, when the spare is `ready`, to the
/// slot's owner.
struct alignas(64) PoolSlot {
  TimeStep result;
  std::int64_t steps = 0; // in the present episode
  double episode_return = 0;
  std::uint64_t episode = 0;         // number of episodes begun
  std::optional<std::uint64_t> seed; // of episode `seeded_at`; later ones use seeds derived from it
  std::uint64_t seeded_at = 0;
  PoolPhase phase = PoolPhase::unstarted;
  RowStatus status = RowStatus::ok;
  std::int32_t failures = 0; // consecutive
  std::unique_ptr<Environment> environment;
  std::string error;

  std::unique_ptr<Environment> spare;
  TimeStep spare_result;
  std::vector<std::byte> spare_observation;
  std::string spare_error; // if not empty, the reset failed
};

/// none: absent, or need not be prepared. wanted: the next episode should be begun in it. overdue:
/// wanted urgently. preparing: a thread is beginning the episode. awaited: preparing, and its
/// environment waits, so that thread will also finish the environment's step. ready: the episode
/// has begun.
enum class SpareState : std::uint8_t { none, wanted, overdue, preparing, awaited, ready };

/// The seed of an episode of an environment in a pool with seed `seed`.
std::uint64_t split_episode_seed(std::uint64_t seed, std::uint64_t environment,
                                 std::uint64_t episode);

/// The message of the exception being handled.
std::string words_of_present_exception();

/// The threads of an EnvironmentPool, their work, and the preparation of spares. The public class
/// has checked all arguments.
///
/// Every thread has a work ring, which the caller fills with the environments assigned to that
/// thread. A thread without work takes from the others unless environments are bound. Idle threads
/// prepare spares; at most all but one do so at a time, so that steps never stop. If no thread is
/// ever idle, spares are prepared at moments spread over the episode.
class PoolEngine {
public:
  using Clock = EnvironmentPool::Clock;

  PoolEngine(const PoolOptions& options, const EnvironmentPool::Make& make);
  ~PoolEngine();

  const EnvironmentSpec& spec() const { return spec_; }
  std::size_t size() const { return slots_.size(); }
  bool bound() const { return bound_; }
  bool spares() const { return spares_; }
  /// Whether episodes depend on earlier ones (Environment::save_lasting_state).
  bool has_lasting_state() const { return has_lasting_state_; }
  PoolSlot& slot(std::size_t environment) { return slots_[environment]; }
  const PoolSlot& slot(std::size_t environment) const { return slots_[environment]; }
  std::span<double> action(std::size_t environment) {
    return std::span(actions_).subspan(environment * action_stride_, spec_.action.size());
  }
  std::byte* own_observation(std::size_t environment) {
    return observations_.data() + environment * observation_stride_;
  }
  /// Sets the destination of the environment's next observation. (It is not in the slot, because
  /// the caller would have to wait for each slot's cache line.)
  void write_to(std::size_t environment, std::byte* observation) {
    destinations_[environment] = observation;
  }

  /// For the caller: push() each environment, then start(). `here`: the caller will wait() at once.
  void push(std::size_t environment);
  void start(std::size_t count, bool here);
  bool wait(std::size_t results, Clock::time_point deadline);
  std::size_t take(); // a result that wait() has seen

  /// Between these two calls no thread touches a spare.
  void hold_spares();
  void release_spares();

private:
  struct Worker { // one thread's state
    explicit Worker(std::size_t environments) : work(environments), done(environments) {}
    WorkRing work;
    DoneRing done;
    Doorbell bell;
    std::size_t first = 0; // environments assigned to this thread
    std::size_t last = 0;
    std::size_t cursor = 0; // where the search for a spare to prepare continues
    alignas(64) std::atomic<std::int32_t> wanted = 0;
    std::atomic<std::int32_t> overdue = 0;
  };

  void make_slots(const PoolOptions& options, const EnvironmentPool::Make& make);
  void start_threads(const PoolOptions& options);
  void run(std::size_t worker, const std::stop_token& stop);
  void rest(std::size_t worker, const std::stop_token& stop);
  bool may_prepare(std::size_t worker) const;
  bool has_work(std::size_t worker) const;
  std::size_t ready() const;

  bool play_one(std::size_t worker);
  void play(std::size_t worker, std::uint32_t environment);
  void step(std::size_t worker, std::uint32_t environment);
  void begin(std::size_t worker, std::uint32_t environment);
  std::uint64_t seed_of(std::uint32_t environment, std::uint64_t episode) const;
  void begin_in_place(std::uint32_t environment);
  void begin_from_spare(std::uint32_t environment);
  void fail(std::uint32_t environment, const std::string& what);
  void publish(std::size_t worker, std::uint32_t environment);

  std::span<std::byte> observation(std::uint32_t environment) {
    return {destinations_[environment], observation_bytes_};
  }
  Worker& tally(std::uint32_t environment) { // the worker whose counters include this spare
    return *workers_[bound_ ? home_[environment] : 0];
  }
  void want_spare(std::uint32_t environment);
  void mind_overdue(std::uint32_t environment);
  bool prepare_one(std::size_t worker, bool overdue_only);
  bool prepare(std::size_t worker, std::uint32_t environment, SpareState from);

  EnvironmentSpec spec_;
  bool bound_ = false;
  bool spares_ = false;
  bool has_lasting_state_ = false;
  bool caller_plays_ = true;
  std::int32_t failure_budget_ = 0;
  int spins_ = 0; // reads of memory before a thread goes to sleep
  std::int32_t preparers_ = 1;
  std::function<std::uint64_t(int, std::uint64_t)> episode_seed_;
  std::vector<PoolSlot> slots_;
  std::vector<std::uint32_t> home_;
  std::vector<std::int64_t> due_; // the step of an episode at which the next one should be ready
  std::size_t action_stride_ = 0; // in numbers; whole cache lines
  std::vector<double> actions_;
  std::size_t observation_bytes_ = 0;
  std::size_t observation_stride_ = 0; // bytes; whole cache lines
  std::vector<std::byte> observations_;
  std::vector<std::byte*> destinations_;
  std::unique_ptr<std::atomic<SpareState>[]> spare_states_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t next_ring_ = 0; // where take() continues
  Doorbell caller_bell_;
  alignas(64) std::atomic<std::int32_t> preparing_ = 0;
  std::vector<std::jthread> threads_; // last, so that the threads end before other members
};

/// While this exists, no thread touches a spare; afterwards spares are prepared again.
class HeldSpares {
public:
  explicit HeldSpares(PoolEngine& engine) : engine_(engine) { engine_.hold_spares(); }
  ~HeldSpares() { engine_.release_spares(); }
  HeldSpares(const HeldSpares&) = delete;
  HeldSpares& operator=(const HeldSpares&) = delete;

private:
  PoolEngine& engine_;
};

} // namespace troupe::env
