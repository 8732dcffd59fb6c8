#pragma once

#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "env/remote/remote_environment.hpp"
#include "env/state_bytes.hpp"

namespace troupe::tests {

using namespace std::chrono_literals;

/// Sums up its actions: position float32 [2] and count int64 []. Episodes have ten steps. Throws if
/// the first action is 1.
class Toy : public env::Environment {
public:
  Toy() {
    spec_.name = "toy";
    spec_.observations = {{"position", env::ElementType::float32, {2}},
                          {"count", env::ElementType::int64, {}}};
    spec_.action = {.minimum = {-1, -1}, .maximum = {1, 1}};
    spec_.episode_steps = 10;
    spec_.control_timestep_seconds = 0.02;
  }

  const env::EnvironmentSpec& spec() const override { return spec_; }

  env::TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override {
    state_ = {.x = static_cast<float>(seed % 1000), .y = 0, .count = 0};
    write(observation);
    return {};
  }

  env::TimeStep step(std::span<const double> action, std::span<std::byte> observation) override {
    if (action[0] == 1)
      throw std::runtime_error("toy exploded");
    state_.x += static_cast<float>(action[0]);
    state_.y += static_cast<float>(action[1]);
    ++state_.count;
    write(observation);
    return {.step_type = state_.count == 10 ? env::StepType::last : env::StepType::mid,
            .reward = state_.x,
            .discount = 0.5};
  }

  void save_state(std::vector<std::byte>& out) const override { env::save_value(out, state_); }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    env::load_value(in, state_, "toy");
    return in;
  }

private:
  struct State {
    float x;
    float y;
    std::int64_t count;
  };
  void write(std::span<std::byte> observation) const {
    std::memcpy(observation.data(), &state_, sizeof state_);
  }

  env::EnvironmentSpec spec_;
  State state_{};
};

inline std::unique_ptr<env::Environment> make_toy() {
  return std::make_unique<Toy>();
}

/// Observes the action that it received, float64 [size]; the reward is the sum. Episodes have ten
/// steps. Accepts any number as a choice: the caller must have checked it.
class Chooser : public env::Environment {
public:
  explicit Chooser(env::ActionSpec action) {
    spec_.name = "chooser";
    spec_.observations = {
        {"action", env::ElementType::float64, {static_cast<std::int64_t>(action.size())}}};
    spec_.action = std::move(action);
    spec_.episode_steps = 10;
  }

  const env::EnvironmentSpec& spec() const override { return spec_; }

  env::TimeStep reset(std::uint64_t, std::span<std::byte> observation) override {
    count_ = 0;
    std::memset(observation.data(), 0, observation.size());
    return {};
  }

  env::TimeStep step(std::span<const double> action, std::span<std::byte> observation) override {
    std::memcpy(observation.data(), action.data(), action.size_bytes());
    return {.step_type = ++count_ == 10 ? env::StepType::last : env::StepType::mid,
            .reward = std::accumulate(action.begin(), action.end(), 0.0),
            .discount = 1};
  }

  void save_state(std::vector<std::byte>& out) const override { env::save_value(out, count_); }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    env::load_value(in, count_, "chooser");
    return in;
  }

private:
  env::EnvironmentSpec spec_;
  std::int64_t count_ = 0;
};

/// A continuous number between a choice of 3 and a choice of 2.
inline env::ActionSpec mixed_action() {
  return {.minimum = {0, -1, 0}, .maximum = {2, 1, 1}, .choices = {3, 0, 2}};
}

/// Memory for the results of a batch.
struct Batch {
  explicit Batch(const env::RemoteEnvironments& remote)
      : steps(remote.size()), bytes(remote.size() * remote.spec().observation_bytes()) {}
  env::RemoteResults results() { return {.steps = steps, .observations = bytes}; }
  float x(std::size_t i) const { return number<float>(i, 0); }
  std::int64_t count(std::size_t i) const { return number<std::int64_t>(i, 8); }

  std::vector<env::TimeStep> steps;
  std::vector<std::byte> bytes;

private:
  template <typename T>
  T number(std::size_t i, std::size_t offset) const {
    T value;
    std::memcpy(&value, bytes.data() + i * (bytes.size() / steps.size()) + offset, sizeof value);
    return value;
  }
};

inline void reset_all(env::RemoteEnvironments& remote, Batch& batch, std::uint64_t seed) {
  std::vector<env::Turn> turns(remote.size());
  for (std::size_t i = 0; i < turns.size(); ++i)
    turns[i] = {.kind = env::Turn::Kind::reset, .seed = seed + i};
  remote.play(turns, {}, batch.results());
}

} // namespace troupe::tests
