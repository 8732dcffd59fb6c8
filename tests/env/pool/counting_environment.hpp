#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "env/pool/environment_pool.hpp"
#include "env/state_bytes.hpp"

namespace troupe::env {

constexpr std::chrono::minutes kPatience{1};
inline EnvironmentPool::Clock::time_point patience() {
  return EnvironmentPool::Clock::now() + kPatience;
}
inline EnvironmentPool::Clock::time_point no_time() {
  return EnvironmentPool::Clock::time_point::min();
}

/// Stays open once opened. pass() waits for that and throws after a minute.
class Gate {
public:
  void open() { open_ = true; }
  void pass() const {
    for (const auto late = patience(); !open_; std::this_thread::yield())
      if (EnvironmentPool::Clock::now() > late)
        throw std::runtime_error("nobody opened the gate");
  }

private:
  std::atomic<bool> open_ = false;
};

/// Called before a reset and a step; may throw.
struct CountingHooks {
  std::function<void(std::uint64_t seed)> reset = [](std::uint64_t) {};
  std::function<void(std::uint64_t seed, std::int64_t step)> step = [](std::uint64_t,
                                                                       std::int64_t) {};
};

/// The observation [3] holds the seed of the episode, its number of steps and the sum of its
/// actions; the reward is the first action.
class CountingEnvironment final : public Environment {
public:
  using Hooks = CountingHooks;

  explicit CountingEnvironment(std::int64_t episode_steps, Hooks hooks = {})
      : hooks_(std::move(hooks)) {
    spec_.name = "counting";
    spec_.observations = {{"numbers", ElementType::float64, {3}}};
    spec_.action = {{-1, -1}, {1, 1}};
    spec_.episode_steps = episode_steps;
  }

  const EnvironmentSpec& spec() const override { return spec_; }

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override {
    hooks_.reset(seed);
    seed_ = seed;
    steps_ = 0;
    sum_ = 0;
    write(observation);
    return {};
  }

  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override {
    hooks_.step(seed_, ++steps_);
    sum_ += action[0] + action[1];
    write(observation);
    return {steps_ == spec_.episode_steps ? StepType::last : StepType::mid, action[0], 1};
  }

  void save_state(std::vector<std::byte>& out) const override {
    save_value(out, seed_);
    save_value(out, steps_);
    save_value(out, sum_);
  }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    load_value(in, seed_, "seed");
    load_value(in, steps_, "steps");
    load_value(in, sum_, "sum");
    return in;
  }

private:
  void write(std::span<std::byte> observation) const {
    const double numbers[] = {static_cast<double>(seed_), static_cast<double>(steps_), sum_};
    std::memcpy(observation.data(), numbers, sizeof numbers);
  }

  Hooks hooks_;
  EnvironmentSpec spec_;
  std::uint64_t seed_ = 0;
  std::int64_t steps_ = 0;
  double sum_ = 0;
};

/// A seed that identifies an episode: environment * 1000 + episode.
inline std::uint64_t plain_seed(int environment, std::uint64_t episode) {
  return static_cast<std::uint64_t>(environment) * 1000 + episode;
}

inline EnvironmentPool counting_pool(PoolOptions options, std::int64_t episode_steps,
                                     const CountingEnvironment::Hooks& hooks = {}) {
  options.episode_seed = plain_seed;
  return EnvironmentPool(
      options, [&](int) { return std::make_unique<CountingEnvironment>(episode_steps, hooks); });
}

inline std::vector<double> numbers(const PoolRows& rows, std::size_t row) {
  std::vector<double> values(rows.observation_bytes / sizeof(double));
  std::memcpy(values.data(), rows.observation(row).data(), rows.observation_bytes);
  return values;
}

inline std::vector<std::int32_t> all_of(const EnvironmentPool& pool) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < pool.environments(); ++i)
    ids.push_back(i);
  return ids;
}

} // namespace troupe::env
