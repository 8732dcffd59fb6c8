#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/acting/policy.hpp"
#include "learner/agents/blocks_config.hpp"
#include "learner/agents/parts/acting_network.hpp"
#include "learner/nn/mlp.hpp"
#include "learner/nn/parameter_layout.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// Returns the size of an observation that is a float32 vector. Throws std::invalid_argument naming
/// the observation and `agent` if it is something else or if the action is empty.
std::int64_t state_size(const replay::TransitionSpec& transitions, const std::string& agent);

/// A policy from states with one network. A derived class computes actions from the network's
/// outputs.
class StatePolicy : public Policy {
public:
  StatePolicy(std::string agent, const replay::TransitionSpec& transitions,
              const std::vector<std::int64_t>& widths, std::int64_t outputs_per_action,
              const BlocksConfig& blocks = {});

  std::int64_t parameter_count() const override { return layout_.count(); }
  void load(std::span<const float> parameters) override;

protected:
  std::int64_t action_size() const { return action_size_; }
  /// Returns [batch, outputs], valid until the next call. Throws std::invalid_argument if a span
  /// has the wrong size, and std::runtime_error if an observation is not finite.
  const float* outputs(const Observations& observations, std::span<const float> actions) {
    return acting_.outputs(observations, actions);
  }
  /// Describes the first `outputs` outputs of the network, without actions.
  PolicyGraph layers(std::int64_t outputs) const;

private:
  void pack();

  std::string agent_;
  replay::TransitionSpec transitions_;
  std::int64_t action_size_;
  ParameterLayout layout_;
  Mlp mlp_;
  at::Tensor parameters_;
  ActingNetwork acting_;
  bool normalised_;
};

} // namespace troupe::learner
