#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "env/environment.hpp"

namespace troupe::experiments {

/// The number of bytes that memcpy and memmove calls of at least 1 KiB copy during `work`, over all
/// threads. The program must link copied_bytes.cpp with --wrap=memcpy and --wrap=memmove.
std::int64_t copied_bytes(const std::function<void()>& work);

/// Paints one frame per step directly into the buffer, as a renderer does. All bytes of a frame are
/// the number of the step.
class PaintedEnvironment final : public env::Environment {
public:
  /// `painted`, if given, receives the address of each frame.
  explicit PaintedEnvironment(env::ArraySpec frame, int episode_steps = 1000,
                              std::vector<const std::byte*>* painted = nullptr)
      : painted_(painted) {
    spec_.name = "painted";
    spec_.observations = {std::move(frame)};
    spec_.action = {{-1}, {1}};
    spec_.episode_steps = episode_steps;
    spec_.saves_state = false;
  }
  const env::EnvironmentSpec& spec() const override { return spec_; }
  env::TimeStep reset(std::uint64_t /*seed*/, std::span<std::byte> observation) override {
    step_ = 0;
    paint(observation);
    return {.step_type = env::StepType::first};
  }
  env::TimeStep step(std::span<const double> /*action*/,
                     std::span<std::byte> observation) override {
    ++step_;
    paint(observation);
    return {.step_type = step_ == spec_.episode_steps ? env::StepType::last : env::StepType::mid};
  }
  void save_state(std::vector<std::byte>& /*out*/) const override {}
  std::span<const std::byte> load_state(std::span<const std::byte> in) override { return in; }

private:
  void paint(std::span<std::byte> observation) {
    std::memset(observation.data(), static_cast<int>(step_ % 251), observation.size());
    if (painted_ != nullptr)
      painted_->push_back(observation.data());
  }

  env::EnvironmentSpec spec_;
  std::int64_t step_ = 0;
  std::vector<const std::byte*>* painted_;
};

} // namespace troupe::experiments
