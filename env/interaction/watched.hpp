#pragma once

#include <functional>

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Calls a watcher before and after each control step of a simulation. It must be the innermost
/// wrapper, so that action repeat does not hide steps.
class Watched final : public Wrapper {
public:
  struct Watcher {
    std::function<void(Physics&)> before = {};                 // a step; may apply forces
    std::function<void(Physics&, const TimeStep& step)> after; // a reset or a step
  };

  /// Throws std::invalid_argument if `inner` has no physics.
  Watched(std::unique_ptr<Environment> inner, Watcher watcher);

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;

private:
  Watcher watcher_;
};

} // namespace troupe::env
