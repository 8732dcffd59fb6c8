#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "env/spec.hpp"

namespace troupe::env {

class Physics;

/// As in dm_env: the first step of an episode, a step in between, or the last step.
enum class StepType : std::uint8_t { first, mid, last };

/// On the last step, `discount` 0 means termination and 1 truncation (a time limit). A first step
/// has reward 0 and discount 1.
struct TimeStep {
  StepType step_type = StepType::first;
  double reward = 0;
  double discount = 1;
};

/// A simulated task. Used by one thread at a time; an environment that renders stays on the thread
/// of its first reset(), because a GL context belongs to a thread. Throws std::invalid_argument on
/// an invalid action or buffer, and std::runtime_error naming the model if the simulation fails;
/// after a failure only reset() is allowed.
class Environment {
public:
  virtual ~Environment() = default;

  virtual const EnvironmentSpec& spec() const = 0;

  /// Begins an episode whose randomness depends only on `seed`. `observation` has
  /// spec().observation_bytes() bytes and belongs to the caller; the environment writes into it.
  virtual TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) = 0;

  /// Takes one agent step. `action` has spec().action.size() finite values. Values outside the
  /// bounds are clipped; a choice that is not one of its whole numbers is refused.
  virtual TimeStep step(std::span<const double> action, std::span<std::byte> observation) = 0;

  /// save_state() appends to `out` everything that the rest of the episode depends on. load_state()
  /// restores it in an environment of the same configuration and returns the bytes that follow;
  /// both environments then continue bit for bit.
  virtual void save_state(std::vector<std::byte>& out) const = 0;
  virtual std::span<const std::byte> load_state(std::span<const std::byte> in) = 0;

  /// The same for what later episodes depend on besides their seeds, such as running statistics.
  /// Allowed at any time. Appends nothing if episodes depend only on their seeds.
  virtual void save_lasting_state(std::vector<std::byte>& /*out*/) const {}
  virtual std::span<const std::byte> load_lasting_state(std::span<const std::byte> in) {
    return in;
  }

  /// The MuJoCo physics behind this environment, or nullptr; for renderers.
  virtual Physics* physics() { return nullptr; }
};

} // namespace troupe::env
