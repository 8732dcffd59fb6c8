#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <ATen/core/Tensor.h>

#include "learner/acting/policy.hpp"
#include "learner/nn/spherical_network.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

struct SphericalPolicyShape {
  std::string agent; // for messages
  std::int64_t width = 0;
  int blocks = 0;
  bool normalised = false; // states are normalised by RunningMoments

  /// Makes the network from states to means and the inputs of squashed_deviations(). Throws
  /// std::invalid_argument naming the observation and the agent if the observation is unsupported.
  SphericalNetwork network(const replay::TransitionSpec& transitions) const;
};

/// raw: [batch, 2 * action size], the means, then numbers that are squashed to logarithms of
/// standard deviations from -10 to 2.
at::Tensor squashed_deviations(const at::Tensor& raw);
/// Replaces `gradient`, that of squashed_deviations(raw), by that of `raw`.
void squashed_deviations_backward(const at::Tensor& raw, at::Tensor& gradient);

/// A policy with a spherical network. It acts with the squashed mean and explores by sampling. Its
/// parameters are the observations' moments, if states are normalised, followed by those of the
/// network.
class SphericalPolicy : public Policy {
public:
  SphericalPolicy(const SphericalPolicyShape& shape, const replay::TransitionSpec& transitions);

  std::int64_t parameter_count() const override { return layout_.count(); }
  void load(std::span<const float> parameters) override;
  using Policy::act;
  void act(const Observations& observations, std::span<float> actions) override;
  void explore(const Observations& observations, const Exploration& exploration,
               std::span<float> actions) override;
  bool has_density() const override { return true; }
  void log_probability(const Observations& observations, const Exploration& exploration,
                       std::span<const float> actions, std::span<double> out) override;
  std::optional<PolicyGraph> graph() const override;

private:
  at::Tensor outputs(const Observations& observations, std::span<const float> actions);

  std::string agent_;
  replay::TransitionSpec transitions_;
  SphericalNetwork network_;
  ParameterLayout layout_;
  at::Tensor flat_, moments_; // moments_ undefined: states are not normalised
  SphericalNetwork::Tensors parameters_;
  SphericalNetwork::Trace trace_;
  Workspace workspace_;
};

} // namespace troupe::learner
