#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "env/spec.hpp"

namespace troupe::env {

class Physics;

/// As in dm_env: the first step of an episode, one in between, the last.
enum class StepType : std::uint8_t { first, mid, last };

/// `discount` 0 on the last step means termination, 1 truncation (a time limit). Reward and
/// discount of a first step are 0 and 1.
struct TimeStep {
  StepType step_type = StepType::first;
  double reward = 0;
  double discount = 1;
};

/// A simulated task. One thread at a time; an environment that renders stays on the thread of its
/// first reset (a GL context belongs to a thread). Throws std::invalid_argument on a wrong action
/// or buffer, std::runtime_error when the simulation fails (the message names the model); after
/// that only reset() is allowed.
class Environment {
public:
  virtual ~Environment() = default;

  virtual const EnvironmentSpec& spec() const = 0;

  /// Begins an episode whose randomness is drawn from `seed` alone. `observation` has
  /// spec().observation_bytes() bytes and belongs to the caller; it is written in place.
  virtual TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) = 0;

  /// One agent step. `action` has spec().action.size() finite values; values outside the bounds are
  /// clipped, a choice that is none of its whole numbers is refused.
  virtual TimeStep step(std::span<const double> action, std::span<std::byte> observation) = 0;

  /// Everything the future of the episode depends on, appended to `out`; load_state() reads it back
  /// on an environment of the same configuration (and returns what is left), after which both
  /// continue bit for bit.
  virtual void save_state(std::vector<std::byte>& out) const = 0;
  virtual std::span<const std::byte> load_state(std::span<const std::byte> in) = 0;

  /// The MuJoCo physics behind this environment, or nullptr; for renderers.
  virtual Physics* physics() { return nullptr; }
};

} // namespace troupe::env
