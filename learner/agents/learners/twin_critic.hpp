#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "learner/agents/learners/agent_update.hpp"
#include "learner/agents/learners/parameter_group.hpp"
#include "learner/nn/mlp.hpp"

namespace troupe::learner {

/// Two networks that estimate the value of a state and an action, and their targets. Using the
/// smaller estimate reduces overestimation (Fujimoto et al. 2018). Must be used on its replica's
/// thread.
class TwinCritic {
public:
  /// `front`: parameters of the layers that compute the state. The same optimizer steps them, and
  /// they come first. `blocks`: number of residual blocks, as for relu_layers().
  TwinCritic(std::int64_t state_size, std::int64_t action_size,
             const std::vector<std::int64_t>& widths, ParameterLayout front = {}, int blocks = 0);

  void build(ReplicaContext& context, const at::TensorOptions& options, at::Generator& generator,
             const Training& training);
  /// New initial parameters on the CPU; those of the front are 0.
  at::Tensor initial(const at::TensorOptions& options, Mlp::Weights weights,
                     at::Generator& generator) const;
  /// `initial` must be on the parameters' device.
  void build(ReplicaContext& context, const at::Tensor& initial, const Training& training);
  ParameterGroup& group() { return group_; }

  /// The smaller value of the target networks, [batch].
  at::Tensor target_value(const at::Tensor& state, const at::Tensor& action) {
    return smaller(targets_, target_tapes_, state, action);
  }

  /// The smaller value of the networks, [batch].
  at::Tensor smaller_value(const at::Tensor& state, const at::Tensor& action) {
    return smaller(parameters_, tapes_, state, action);
  }

  /// Makes a step on the mean over the rows of weight * scale * (sum of both squared errors).
  /// `weight` may be undefined. Reports the metric "critic_loss".
  void learn(AgentUpdate& update, const at::Tensor& state, const at::Tensor& action,
             const at::Tensor& target, const at::Tensor& weight, double scale);
  /// Returns the loss, [], and writes its gradient to group().gradient(), except that of the front.
  /// Makes no step. `state_gradient`, [batch, state size], receives the gradient of the state.
  at::Tensor backward(const at::Tensor& state, const at::Tensor& action, const at::Tensor& target,
                      const at::Tensor& weight, double scale, at::Tensor* state_gradient = nullptr);
  /// [batch] the mean of both absolute errors in the last batch. Undefined if it had no weights.
  const at::Tensor& errors() const { return errors_; }

  struct Value {
    at::Tensor mean;            // []
    at::Tensor action_gradient; // of the mean, [batch, action size]
    at::Tensor values;          // [batch], of the first network only
  };
  /// The mean value of the actions, according to the first network or, if `smaller` is set, to the
  /// smaller value of each row.
  Value value(const at::Tensor& state, const at::Tensor& action, bool smaller);

private:
  using Layers = std::array<std::vector<LayerTensors>, 2>;
  at::Tensor smaller(const Layers& layers, std::array<Tape, 2>& tapes, const at::Tensor& state,
                     const at::Tensor& action);

  Mlp networks_[2];
  ParameterGroup group_;
  Layers parameters_, gradients_, targets_;
  std::array<Tape, 2> tapes_, target_tapes_;
  Workspace workspace_;
  at::Tensor errors_;
};

} // namespace troupe::learner
