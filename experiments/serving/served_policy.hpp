#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "env/spec.hpp"
#include "experiments/exporting/contract.hpp"
#include "learner/acting/policy.hpp"

namespace troupe::experiments::serving {

/// A policy behind its contract: it takes observations as the environment has them, and gives
/// actions in the environment's own bounds.
class ServedPolicy {
public:
  /// `spec`: of the environment with its wrappers, without normalisation.
  ServedPolicy(PolicyContract contract, env::EnvironmentSpec spec,
               std::unique_ptr<learner::Policy> policy);

  const PolicyContract& contract() const { return contract_; }
  const env::EnvironmentSpec& spec() const { return spec_; }
  std::size_t state_size() const { return static_cast<std::size_t>(contract_.state_size); }
  std::size_t action_size() const { return contract_.actions.size(); }
  /// Of one frame of the first array; the history is as many of them, oldest first.
  std::size_t frame_bytes() const { return contract_.observations[0].spec.bytes(); }

  /// Puts the frames before the newest one into an observation that has that alone; `before`:
  /// history_of() the observation before, empty at the first of an episode.
  void complete_history(std::span<std::byte> observation, std::span<const std::byte> before) const;
  /// The frames that the next observation has in front of its newest one.
  std::span<const std::byte> history_of(std::span<const std::byte> observation) const;

  /// observations: whole ones as `spec` lays them out, which are normalised in place; states
  /// [batch, state_size()] are replaced; actions [batch, action_size()]. One thread at a time.
  /// Throws std::runtime_error on an action that is not finite.
  void act(std::span<std::byte* const> observations, std::span<float> states,
           std::span<float> actions);

private:
  PolicyContract contract_;
  env::EnvironmentSpec spec_;
  std::unique_ptr<learner::Policy> policy_;
};

} // namespace troupe::experiments::serving
