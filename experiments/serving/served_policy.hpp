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

/// A policy behind its contract: it takes observations as the environment provides them, and its
/// actions are within the environment's own bounds.
class ServedPolicy {
public:
  /// `spec` describes the wrapped environment without normalisation.
  ServedPolicy(PolicyContract contract, env::EnvironmentSpec spec,
               std::unique_ptr<learner::Policy> policy);

  const PolicyContract& contract() const { return contract_; }
  const env::EnvironmentSpec& spec() const { return spec_; }
  std::size_t state_size() const { return static_cast<std::size_t>(contract_.state_size); }
  std::size_t action_size() const { return contract_.actions.size(); }
  /// Size of one frame of the first array. The history consists of such frames, oldest first.
  std::size_t frame_bytes() const { return contract_.observations[0].spec.bytes(); }

  /// Fills in the older frames of an observation that has only the newest one. `before` is the
  /// result of history_of() for the previous observation; empty at the first observation of an
  /// episode.
  void complete_history(std::span<std::byte> observation, std::span<const std::byte> before) const;
  /// The frames that precede the newest one in the next observation.
  std::span<const std::byte> history_of(std::span<const std::byte> observation) const;

  /// Computes the actions [batch, action_size()] for complete observations in the layout of `spec`.
  /// Replaces the states [batch, state_size()]. A number of an action is NaN if the policy's is not
  /// finite. Use from one thread at a time.
  void act(std::span<const std::byte* const> observations, std::span<float> states,
           std::span<float> actions);

private:
  PolicyContract contract_;
  env::EnvironmentSpec spec_;
  std::unique_ptr<learner::Policy> policy_;
  std::vector<std::byte> normalised_; // [batch] observations, if the contract normalises
};

} // namespace troupe::experiments::serving
