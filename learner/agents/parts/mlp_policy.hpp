#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/acting/policy.hpp"
#include "learner/agents/parts/acting_network.hpp"
#include "learner/nn/mlp.hpp"
#include "learner/nn/parameter_layout.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// Returns the size of an observation that is a float32 vector. Throws std::invalid_argument naming
/// the observation and `agent` if it is something else or if the action is empty.
std::int64_t state_size(const replay::TransitionSpec& transitions, const std::string& agent);

/// A policy with one network, from states or pixels. Its parameters begin with those of the encoder
/// or with the observations' moments, followed by those of the layers. A derived class computes
/// actions from the network's outputs.
class MlpPolicy : public Policy {
public:
  /// `encoder`: shape of the encoder for pixels; null: states. `normalised`: states are normalised
  /// by RunningMoments.
  MlpPolicy(std::string agent, const replay::TransitionSpec& transitions, Mlp layers,
            const EncoderShape* encoder = nullptr, bool normalised = false);

  std::int64_t parameter_count() const override { return layout_.count(); }
  void load(std::span<const float> parameters) override;

protected:
  std::int64_t action_size() const { return transitions_.action_size; }
  const Mlp& layers() const { return layers_; }
  /// Views of the layers' parameters.
  std::vector<LayerTensors> parameters() const { return layers_.bind(layout_, parameters_); }
  /// Returns [batch, outputs], valid until the next call. Throws std::invalid_argument if a span
  /// has the wrong size, and std::runtime_error if an observation is not finite.
  const float* outputs(const Observations& observations, std::span<const float> actions) {
    return network_.outputs(observations, actions);
  }
  /// The inputs of the layers in the last outputs(), [batch, inputs].
  const float* inputs() const { return network_.inputs(); }
  /// Describes a policy whose actions are the tanh of the first outputs.
  PolicyGraph tanh_graph() const;

private:
  void pack();

  std::string agent_;
  replay::TransitionSpec transitions_;
  Mlp layers_;
  EncoderShape encoder_;
  bool pixels_;
  bool normalised_;
  ActingNetwork network_;
  ParameterLayout layout_;
  at::Tensor parameters_;
};

} // namespace troupe::learner
