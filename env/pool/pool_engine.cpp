#include "env/pool/pool_engine.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "env/checks.hpp"

namespace troupe::env {

namespace {

constexpr int kSpins = 400; // some 10 µs, the time that a sleeping thread takes to wake
constexpr std::size_t kCacheLineBytes = 64;
constexpr std::int64_t kGuessedEpisodeSteps = 1000; // if the spec sets no limit
constexpr std::chrono::seconds kPoolNap{1};

bool has_pictures(const EnvironmentSpec& spec) {
  return std::any_of(spec.observations.begin(), spec.observations.end(),
                     [](const ArraySpec& array) { return array.type == ElementType::uint8; });
}

void check_alike(const EnvironmentSpec& first, const Environment* other, int number) {
  const std::string name = "environment " + std::to_string(number) + " of the pool";
  if (other == nullptr)
    throw std::invalid_argument(name + ": none was made");
  if (other->spec().observations != first.observations || other->spec().action != first.action)
    throw std::invalid_argument(name + " (" + other->spec().name
                                + ") has different observations or actions from the first one ("
                                + first.name + "); a pool needs environments that are alike");
}

/// The number of CPUs that this process may use.
std::size_t allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<std::size_t>(CPU_COUNT(&set))
                                                     : 1;
}

void check_result(const TimeStep& result) {
  if (!std::isfinite(result.reward) || !std::isfinite(result.discount))
    throw std::runtime_error("its reward is " + std::to_string(result.reward) + " and its discount "
                             + std::to_string(result.discount) + "; both must be finite");
}

} // namespace

PoolEngine::PoolEngine(const PoolOptions& options, const EnvironmentPool::Make& make)
    : caller_plays_(options.caller_plays),
      failure_budget_(options.failure_budget),
      episode_seed_(options.episode_seed) {
  if (!episode_seed_)
    episode_seed_ = [seed = options.seed](int environment, std::uint64_t episode) {
      return split_episode_seed(seed, static_cast<std::uint64_t>(environment), episode);
    };
  make_slots(options, make);
  start_threads(options);
}

void PoolEngine::make_slots(const PoolOptions& options, const EnvironmentPool::Make& make) {
  const auto count = static_cast<std::size_t>(options.environments);
  const auto threads = static_cast<std::size_t>(options.threads);
  slots_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    slots_[i].environment = make(static_cast<int>(i));
    if (i == 0 && slots_[0].environment)
      spec_ = slots_[0].environment->spec();
    check_alike(spec_, slots_[i].environment.get(), static_cast<int>(i));
  }
  bound_ = options.binding == PoolThreads::bound
           || (options.binding == PoolThreads::automatic && has_pictures(spec_));
  std::vector<std::byte> lasting;
  slots_[0].environment->save_lasting_state(lasting);
  has_lasting_state_ = !lasting.empty();
  if (has_lasting_state_ && options.spares.value_or(false))
    throw std::invalid_argument("spares: true, but episodes of environment " + spec_.name
                                + " depend on earlier ones (running statistics), and a spare would "
                                  "keep its own; leave spares out, or freeze the statistics");
  spares_ = options.spares.value_or(!bound_ && threads > 1 && !has_lasting_state_);
  preparers_ = bound_ ? options.threads : std::max(1, options.threads - 1);
  spare_states_ = std::make_unique<std::atomic<SpareState>[]>(count);
  const std::int64_t episode = spec_.episode_steps > 0 ? spec_.episode_steps : kGuessedEpisodeSteps;
  for (std::size_t i = 0; i < count; ++i) {
    spare_states_[i] = SpareState::none;
    home_.push_back(static_cast<std::uint32_t>(i * threads / count));
    const double place = static_cast<double>(i + 1) / static_cast<double>(count);
    due_.push_back(std::max<std::int64_t>(
        1, static_cast<std::int64_t>(.8 * place * static_cast<double>(episode))));
    if (!spares_)
      continue;
    slots_[i].spare = make(static_cast<int>(i));
    check_alike(spec_, slots_[i].spare.get(), static_cast<int>(i));
    slots_[i].spare_observation.resize(spec_.observation_bytes());
  }
  action_stride_ = (spec_.action.size() + 7) / 8 * 8;
  actions_.resize(count * action_stride_);
  observation_bytes_ = spec_.observation_bytes();
  observation_stride_ =
      (observation_bytes_ + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
  observations_.resize(count * observation_stride_);
  destinations_.resize(count);
}

void PoolEngine::start_threads(const PoolOptions& options) {
  const auto threads = static_cast<std::size_t>(options.threads);
  for (std::size_t t = 0; t < threads; ++t) {
    workers_.push_back(std::make_unique<Worker>(slots_.size()));
    const auto range = std::equal_range(home_.begin(), home_.end(), static_cast<std::uint32_t>(t));
    workers_[t]->first = static_cast<std::size_t>(range.first - home_.begin());
    workers_[t]->last = static_cast<std::size_t>(range.second - home_.begin());
  }
  const bool one_each = threads + (caller_plays_ ? 0 : 1) <= allowed_cpus();
  spins_ = one_each ? kSpins : 0; // otherwise a spinning thread would occupy a working thread's CPU
  for (std::size_t t = caller_plays_ ? 1 : 0; t < threads; ++t) {
    threads_.emplace_back([this, t](const std::stop_token& stop) { run(t, stop); });
    pthread_setname_np(threads_.back().native_handle(),
                       ("pool " + std::to_string(t)).substr(0, 15).c_str());
  }
}

PoolEngine::~PoolEngine() {
  for (std::jthread& thread : threads_)
    thread.request_stop();
  for (const auto& worker : workers_)
    worker->bell.ring();
  threads_.clear(); // joins
}

void PoolEngine::run(std::size_t worker, const std::stop_token& stop) {
  while (!stop.stop_requested())
    if (!play_one(worker))
      rest(worker, stop);
  if (bound_) // thread-bound objects must be destroyed on their thread
    for (std::size_t i = workers_[worker]->first; i < workers_[worker]->last; ++i) {
      slots_[i].environment.reset();
      slots_[i].spare.reset();
    }
}

bool PoolEngine::has_work(std::size_t worker) const {
  if (bound_)
    return !workers_[worker]->work.empty();
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const auto& other) { return !other->work.empty(); });
}

void PoolEngine::rest(std::size_t worker, const std::stop_token& stop) {
  for (int i = 0; i < spins_; ++i) {
    if (has_work(worker) || stop.stop_requested())
      return;
    spin_pause();
  }
  if (may_prepare(worker) && prepare_one(worker, false))
    return;
  Doorbell& bell = workers_[worker]->bell;
  const std::uint32_t key = bell.announce();
  if (has_work(worker) || stop.stop_requested())
    bell.retract();
  else
    bell.sleep(key, Clock::now() + kPoolNap);
}

std::size_t PoolEngine::ready() const {
  std::size_t count = 0;
  for (const auto& worker : workers_)
    count += worker->done.size();
  return count;
}

void PoolEngine::push(std::size_t environment) {
  workers_[home_[environment]]->work.push(static_cast<std::uint32_t>(environment));
}

void PoolEngine::start(std::size_t count, bool here) {
  std::size_t wakes = here && caller_plays_ && count > 0 ? count - 1 : count;
  for (std::size_t t = 0; t < workers_.size(); ++t) {
    const bool committed = workers_[t]->work.commit();
    if (bound_ && committed)
      workers_[t]->bell.ring();
  }
  if (bound_)
    return;
  // Passes over threads that are awake: they may be in a long step while others sleep.
  for (std::size_t t = caller_plays_ ? 1 : 0; t < workers_.size() && wakes > 0; ++t)
    wakes -= workers_[t]->bell.ring() ? 1 : 0;
}

bool PoolEngine::wait(std::size_t results, Clock::time_point deadline) {
  for (int idle = 0;;) {
    if (ready() >= results)
      return true;
    if (caller_plays_ && play_one(0)) {
      if (ready() < results && Clock::now() >= deadline)
        return false;
      idle = 0;
    } else if (idle++ < spins_) {
      spin_pause();
    } else {
      if (Clock::now() >= deadline)
        return false;
      const std::uint32_t key = caller_bell_.announce();
      if (ready() >= results || (caller_plays_ && has_work(0)))
        caller_bell_.retract();
      else
        caller_bell_.sleep(key, deadline);
    }
  }
}

std::size_t PoolEngine::take() {
  while (workers_[next_ring_]->done.size() == 0)
    next_ring_ = (next_ring_ + 1) % workers_.size();
  const std::size_t environment = workers_[next_ring_]->done.take();
  next_ring_ = (next_ring_ + 1) % workers_.size(); // round robin, so that no ring starves
  return environment;
}

bool PoolEngine::play_one(std::size_t worker) {
  if (may_prepare(worker) && prepare_one(worker, true))
    return true;
  for (std::size_t k = 0; k < (bound_ ? 1 : workers_.size()); ++k)
    if (const auto environment = workers_[(worker + k) % workers_.size()]->work.take()) {
      play(worker, *environment);
      return true;
    }
  return false;
}

void PoolEngine::play(std::size_t worker, std::uint32_t environment) {
  if (slots_[environment].phase == PoolPhase::playing)
    step(worker, environment);
  else
    begin(worker, environment);
}

void PoolEngine::step(std::size_t worker, std::uint32_t environment) {
  PoolSlot& slot = slots_[environment];
  ++slot.steps;
  try {
    const auto values = action(environment);
    check_action(spec_, values);
    slot.result = slot.environment->step(values, observation(environment));
    check_result(slot.result);
    slot.episode_return += slot.result.reward;
    slot.status = RowStatus::ok;
    if (slot.result.step_type == StepType::last) {
      slot.phase = PoolPhase::ended;
      slot.failures = 0;
    }
  } catch (...) {
    fail(environment, words_of_present_exception());
  }
  mind_overdue(environment);
  publish(worker, environment);
}

void PoolEngine::fail(std::uint32_t environment, const std::string& what) {
  PoolSlot& slot = slots_[environment];
  ++slot.failures;
  const bool out = slot.failures > failure_budget_;
  slot.error = "environment " + std::to_string(environment) + " of the pool (" + spec_.name
               + "), episode " + std::to_string(slot.episode - 1) + ", step "
               + std::to_string(slot.steps) + ": " + what;
  if (out)
    slot.error +=
        "; " + std::to_string(slot.failures) + " episodes in a row failed, so it is out of service";
  slot.status = out ? RowStatus::out_of_service : RowStatus::failed;
  slot.phase = out ? PoolPhase::out_of_service : PoolPhase::ended;
  slot.result = {StepType::last, 0, 1};
  std::memset(destinations_[environment], 0, observation_bytes_);
}

void PoolEngine::publish(std::size_t worker, std::uint32_t environment) {
  workers_[worker]->done.push(environment); // the slot now belongs to the caller
  if (worker > 0 || !caller_plays_)
    caller_bell_.ring();
}

} // namespace troupe::env
