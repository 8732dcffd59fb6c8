#include "env/pool/environment_pool.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "env/pool/pool_engine.hpp"

namespace troupe::env {

namespace {

constexpr int kMostEnvironments = 65536;
constexpr int kMostThreads = 1024;

void check_range(const char* key, int value, int least, int most, const char* hint) {
  if (value < least || value > most)
    throw std::invalid_argument(std::string(key) + " of the pool is " + std::to_string(value)
                                + "; it must be from " + std::to_string(least) + " to "
                                + std::to_string(most) + hint);
}

const PoolOptions& checked(const PoolOptions& options) {
  check_range("environments", options.environments, 1, kMostEnvironments, "");
  check_range("threads", options.threads, 1, std::min(options.environments, kMostThreads),
              " (its number of environments)");
  check_range("failure_budget", options.failure_budget, 0, 1'000'000, "");
  return options;
}

template <typename T>
void check_rows(const char* what, std::span<T> values, std::size_t count) {
  if (values.size() != count)
    throw std::invalid_argument(std::string("batch for a pool: ") + what + " has "
                                + std::to_string(values.size()) + " entries; it needs "
                                + std::to_string(count));
}

} // namespace

PoolRows::PoolRows(const EnvironmentSpec& spec, std::size_t rows)
    : observation_bytes(spec.observation_bytes()),
      observations(rows * observation_bytes),
      rewards(rows),
      discounts(rows),
      step_types(rows),
      statuses(rows),
      environments(rows),
      episode_steps(rows),
      episode_returns(rows) {}

PoolBatch PoolRows::batch() {
  return {.observations = observations,
          .rewards = rewards,
          .discounts = discounts,
          .step_types = step_types,
          .statuses = statuses,
          .environments = environments,
          .episode_steps = episode_steps,
          .episode_returns = episode_returns};
}

std::span<const std::byte> PoolRows::observation(std::size_t row) const {
  return std::span(observations).subspan(row * observation_bytes, observation_bytes);
}

EnvironmentPool::EnvironmentPool(const PoolOptions& options, const Make& make)
    : engine_(std::make_unique<PoolEngine>(checked(options), make)),
      on_its_way_(static_cast<std::size_t>(options.environments)),
      out_of_service_(on_its_way_.size()) {
  in_service_.reserve(on_its_way_.size());
}

EnvironmentPool::EnvironmentPool(const PoolOptions& options, const EnvironmentConfig& config)
    : EnvironmentPool(options, [&config](int) { return make_environment(config); }) {}

EnvironmentPool::~EnvironmentPool() = default;

const EnvironmentSpec& EnvironmentPool::spec() const {
  return engine_->spec();
}
int EnvironmentPool::environments() const {
  return static_cast<int>(engine_->size());
}
bool EnvironmentPool::bound() const {
  return engine_->bound();
}
bool EnvironmentPool::spares() const {
  return engine_->spares();
}
std::size_t EnvironmentPool::in_flight() const {
  return in_flight_;
}

void EnvironmentPool::observe_in(std::span<std::byte* const> places) {
  check_nothing_in_flight("observe_in()");
  if (!places.empty())
    check_rows("places of observations", places, engine_->size());
  places_ = places;
}

void EnvironmentPool::seed(std::span<const std::int32_t> environments,
                           std::span<const std::uint64_t> seeds) {
  check_nothing_in_flight("seed()");
  check_rows("seeds", seeds, environments.size());
  for (const std::int32_t id : environments)
    check_exists(id);
  const HeldSpares held(*engine_); // spares hold episodes of other seeds
  for (std::size_t i = 0; i < environments.size(); ++i) {
    PoolSlot& slot = engine_->slot(static_cast<std::size_t>(environments[i]));
    slot.seed = seeds[i];
    slot.seeded_at = slot.episode;
  }
}

/// Sets the destination of an environment's next observation.
void EnvironmentPool::direct(std::size_t environment, std::byte* otherwise) {
  engine_->write_to(environment, places_.empty() ? otherwise : places_[environment]);
}

/// Makes the environment begin an episode next.
void EnvironmentPool::end_episode(std::size_t environment) {
  PoolSlot& slot = engine_->slot(environment);
  slot.phase = PoolPhase::ended;
  if (out_of_service_[environment] != 0)
    slot.failures = 0;
  out_of_service_[environment] = 0;
}

void EnvironmentPool::check_environments(std::span<const std::int32_t> environments,
                                         Request request) {
  // Marks environments while checking them to find duplicates; unmarks them if one is refused.
  for (std::size_t i = 0; i < environments.size(); ++i) {
    const std::int32_t id = environments[i];
    std::string problem;
    if (id < 0 || static_cast<std::size_t>(id) >= engine_->size())
      problem = " does not exist; there are 0 to " + std::to_string(engine_->size() - 1);
    else if (on_its_way_[static_cast<std::size_t>(id)])
      problem = " is already in flight; receive its result first, and name it once";
    else if (request == Request::step && !in_service(id))
      problem = " is out of service: " + error(id);
    if (!problem.empty()) {
      for (const std::int32_t marked : environments.first(i))
        on_its_way_[static_cast<std::size_t>(marked)] = 0;
      throw std::invalid_argument("environment " + std::to_string(id) + " of the pool" + problem);
    }
    on_its_way_[static_cast<std::size_t>(id)] = 1;
  }
}

void EnvironmentPool::check_batch(const PoolBatch& batch) const {
  const std::size_t rows = batch.rows();
  if (places_.empty())
    check_rows("observations", batch.observations, rows * spec().observation_bytes());
  check_rows("discounts", batch.discounts, rows);
  check_rows("step_types", batch.step_types, rows);
  check_rows("statuses", batch.statuses, rows);
  check_rows("environments", batch.environments, rows);
  check_rows("episode_steps", batch.episode_steps, rows);
  check_rows("episode_returns", batch.episode_returns, rows);
}

void EnvironmentPool::check_nothing_in_flight(const char* what) const {
  if (in_flight_ > 0)
    throw std::invalid_argument(std::string(what) + ": " + std::to_string(in_flight_)
                                + " environments of the pool are in flight; "
                                + (waited_for_ > 0 ? "finish() them first" : "receive them first"));
}

template <typename T>
void EnvironmentPool::put_actions(std::span<const std::int32_t> environments,
                                  std::span<const T> actions) {
  const std::size_t size = spec().action.size();
  for (std::size_t i = 0; i < environments.size(); ++i) {
    const auto row = actions.subspan(i * size, size);
    std::copy(row.begin(), row.end(),
              engine_->action(static_cast<std::size_t>(environments[i])).begin());
  }
}

bool EnvironmentPool::reset(std::span<const std::int32_t> environments, const PoolBatch& all,
                            Clock::time_point deadline) {
  check_nothing_in_flight("reset()");
  check_rows("rewards", all.rewards, engine_->size());
  check_batch(all);
  check_environments(environments, Request::reset);
  for (const std::int32_t id : environments)
    end_episode(static_cast<std::size_t>(id));
  return play_in_place(environments, all, deadline);
}

template <typename T>
bool EnvironmentPool::step_all(std::span<const T> actions, const PoolBatch& all,
                               Clock::time_point deadline) {
  check_nothing_in_flight("step()");
  check_rows("rewards", all.rewards, engine_->size());
  check_batch(all);
  const std::size_t size = spec().action.size();
  check_rows("actions", actions, engine_->size() * size);
  in_service_.clear();
  for (std::int32_t id = 0; id < environments(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    if (out_of_service_[i] == 0) {
      in_service_.push_back(id);
      on_its_way_[i] = 1;
      const auto row = actions.subspan(i * size, size);
      std::copy(row.begin(), row.end(), engine_->action(i).begin());
    } else {
      const auto bytes = spec().observation_bytes();
      std::byte* row = places_.empty() ? all.observations.data() + i * bytes : places_[i];
      std::fill_n(row, bytes, std::byte{0});
      write_row(all, i, id);
    }
  }
  return play_in_place(in_service_, all, deadline);
}

bool EnvironmentPool::step(std::span<const double> actions, const PoolBatch& all,
                           Clock::time_point deadline) {
  return step_all(actions, all, deadline);
}
bool EnvironmentPool::step(std::span<const float> actions, const PoolBatch& all,
                           Clock::time_point deadline) {
  return step_all(actions, all, deadline);
}

bool EnvironmentPool::play_in_place(std::span<const std::int32_t> environments,
                                    const PoolBatch& all, Clock::time_point deadline) {
  const std::size_t bytes = spec().observation_bytes();
  for (const std::int32_t id : environments) {
    const auto i = static_cast<std::size_t>(id);
    direct(i, all.observations.data() + i * bytes);
    engine_->push(i);
  }
  in_flight_ = waited_for_ = environments.size();
  in_place_ = all;
  engine_->start(environments.size(), true);
  return finish(deadline);
}

bool EnvironmentPool::finish(Clock::time_point deadline) {
  if (!engine_->wait(waited_for_, deadline))
    return false;
  for (; waited_for_ > 0; --waited_for_) {
    const std::size_t i = engine_->take();
    on_its_way_[i] = 0;
    write_row(in_place_, i, static_cast<std::int32_t>(i));
    --in_flight_;
  }
  return true;
}

void EnvironmentPool::send_reset(std::span<const std::int32_t> environments) {
  if (waited_for_ > 0)
    check_nothing_in_flight("send_reset()");
  check_environments(environments, Request::reset);
  for (const std::int32_t id : environments) {
    const auto i = static_cast<std::size_t>(id);
    end_episode(i);
    direct(i, engine_->own_observation(i));
    engine_->push(i);
  }
  in_flight_ += environments.size();
  engine_->start(environments.size(), false);
}

template <typename T>
void EnvironmentPool::send_actions(std::span<const std::int32_t> environments,
                                   std::span<const T> actions) {
  if (waited_for_ > 0)
    check_nothing_in_flight("send()");
  check_rows("actions", actions, environments.size() * spec().action.size());
  check_environments(environments, Request::step);
  put_actions(environments, actions);
  for (const std::int32_t id : environments) {
    const auto i = static_cast<std::size_t>(id);
    direct(i, engine_->own_observation(i));
    engine_->push(i);
  }
  in_flight_ += environments.size();
  engine_->start(environments.size(), false);
}

void EnvironmentPool::send(std::span<const std::int32_t> environments,
                           std::span<const double> actions) {
  send_actions(environments, actions);
}
void EnvironmentPool::send(std::span<const std::int32_t> environments,
                           std::span<const float> actions) {
  send_actions(environments, actions);
}

bool EnvironmentPool::receive(const PoolBatch& batch, Clock::time_point deadline) {
  if (waited_for_ > 0)
    check_nothing_in_flight("receive()");
  check_batch(batch);
  if (batch.rows() > in_flight_)
    throw std::invalid_argument("receive(): the batch has " + std::to_string(batch.rows())
                                + " rows and " + std::to_string(in_flight_)
                                + " environments of the pool are in flight; send() more first");
  if (!engine_->wait(batch.rows(), deadline))
    return false;
  const std::size_t bytes = spec().observation_bytes();
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    const std::size_t i = engine_->take();
    on_its_way_[i] = 0;
    if (places_.empty())
      std::memcpy(batch.observations.data() + row * bytes, engine_->own_observation(i), bytes);
    write_row(batch, row, static_cast<std::int32_t>(i));
  }
  in_flight_ -= batch.rows();
  return true;
}

void EnvironmentPool::write_row(const PoolBatch& batch, std::size_t row, std::int32_t environment) {
  const PoolSlot& slot = engine_->slot(static_cast<std::size_t>(environment));
  batch.rewards[row] = slot.result.reward;
  batch.discounts[row] = slot.result.discount;
  batch.step_types[row] = slot.result.step_type;
  batch.statuses[row] = slot.status;
  if (slot.status == RowStatus::out_of_service)
    out_of_service_[static_cast<std::size_t>(environment)] = 1;
  batch.environments[row] = environment;
  batch.episode_steps[row] = slot.steps;
  batch.episode_returns[row] = slot.episode_return;
}

void EnvironmentPool::check_exists(int environment) const {
  if (environment < 0 || environment >= environments())
    throw std::invalid_argument("environment " + std::to_string(environment)
                                + " of the pool does not exist; there are 0 to "
                                + std::to_string(environments() - 1));
}

void EnvironmentPool::check_here(int environment) const {
  check_exists(environment);
  if (on_its_way_[static_cast<std::size_t>(environment)] != 0)
    throw std::invalid_argument("environment " + std::to_string(environment)
                                + " of the pool is in flight; receive its result first");
}

Physics* EnvironmentPool::physics(int environment) {
  check_here(environment);
  return engine_->slot(static_cast<std::size_t>(environment)).environment->physics();
}

const std::string& EnvironmentPool::error(int environment) const {
  check_here(environment);
  return engine_->slot(static_cast<std::size_t>(environment)).error;
}

bool EnvironmentPool::in_service(int environment) const {
  check_exists(environment);
  return out_of_service_[static_cast<std::size_t>(environment)] == 0;
}

} // namespace troupe::env
