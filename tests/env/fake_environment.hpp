#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <memory>

#include "env/environment.hpp"
#include "env/state_bytes.hpp"

namespace troupe::env {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Episodes of five steps. Step k has reward k, discount .5 and the observations (k) and
/// (k, action 0). The last action that it received is kept in `last_action`.
class Counting final : public Environment {
public:
  explicit Counting(std::vector<double>* last_action = nullptr) : last_action_(last_action) {
    spec_.name = "counting";
    spec_.observations = {{"count", ElementType::float64, {1}},
                          {"pair", ElementType::float64, {2}}};
    spec_.action = {{-2, 0}, {6, 1}};
    spec_.episode_steps = 5;
    spec_.control_timestep_seconds = .5;
  }
  const EnvironmentSpec& spec() const override { return spec_; }
  TimeStep reset(std::uint64_t seed, std::span<std::byte> out) override {
    count_ = static_cast<double>(seed);
    start_ = count_;
    write(out, 0);
    return {};
  }
  TimeStep step(std::span<const double> action, std::span<std::byte> out) override {
    ++count_;
    if (last_action_ != nullptr)
      last_action_->assign(action.begin(), action.end());
    write(out, action[0]);
    const bool last = count_ - start_ >= 5;
    return {last ? StepType::last : StepType::mid, count_ - start_, .5};
  }
  void save_state(std::vector<std::byte>& out) const override {
    save_value(out, count_);
    save_value(out, start_);
  }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    load_value(in, count_, "count");
    load_value(in, start_, "start");
    return in;
  }

private:
  void write(std::span<std::byte> out, double action) const {
    const double values[] = {count_, count_, action};
    REQUIRE(out.size() == sizeof values);
    std::memcpy(out.data(), values, sizeof values);
  }
  EnvironmentSpec spec_;
  double count_ = 0;
  double start_ = 0;
  std::vector<double>* last_action_;
};

template <typename T>
std::vector<T> numbers(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// An environment with its observation buffer and its last time step.
struct Played {
  std::unique_ptr<Environment> environment;
  std::vector<std::byte> observation;
  TimeStep last{};

  explicit Played(std::unique_ptr<Environment> made)
      : environment(std::move(made)), observation(environment->spec().observation_bytes()) {}
  Played& reset(std::uint64_t seed) {
    last = environment->reset(seed, observation);
    return *this;
  }
  Played& step(std::vector<double> action) {
    last = environment->step(action, observation);
    return *this;
  }
};

} // namespace troupe::env
