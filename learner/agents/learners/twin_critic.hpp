#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "learner/agents/learners/agent_update.hpp"
#include "learner/agents/learners/parameter_group.hpp"
#include "learner/nn/mlp.hpp"

namespace troupe::learner {

/// Two networks that estimate the value of a state and an action, and their targets: the smaller
/// estimate is less often too high (Fujimoto et al. 2018). The thread of its replica.
class TwinCritic {
public:
  /// `front`: parameters of what makes the state, which the same optimizer steps; they come first.
  /// `blocks`: residual blocks, as relu_layers().
  TwinCritic(std::int64_t state_size, std::int64_t action_size,
             const std::vector<std::int64_t>& widths, ParameterLayout front = {}, int blocks = 0);

  struct Training {
    double learning_rate = 0;
    double gradient_norm = 0; // clips; 0: off
    double weight_decay = 0;
    bool halves = false; // products in bfloat16
  };
  void build(ReplicaContext& context, const at::TensorOptions& options, at::Generator& generator,
             const Training& training);
  /// Fresh parameters on the CPU; those of the front are 0.
  at::Tensor initial(const at::TensorOptions& options, Mlp::Weights weights,
                     at::Generator& generator) const;
  /// `initial`: on their device.
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

  /// A step on the mean over the rows of weight * sum of both squared errors * scale. `weight` may
  /// be undefined. Tells the loss, "critic_loss".
  void learn(AgentUpdate& update, const at::Tensor& state, const at::Tensor& action,
             const at::Tensor& target, const at::Tensor& weight, double scale);
  /// The loss, [], and its gradient in group().gradient(), without a step and without the front's.
  /// `state_gradient`, [batch, state size]: takes the gradient of the state.
  at::Tensor backward(const at::Tensor& state, const at::Tensor& action, const at::Tensor& target,
                      const at::Tensor& weight, double scale, at::Tensor* state_gradient = nullptr);
  /// Of the last rows: the mean of both absolute errors, [batch].
  const at::Tensor& errors() const { return errors_; }

  struct Value {
    at::Tensor mean;            // []
    at::Tensor action_gradient; // of the mean, [batch, action size]
    at::Tensor values;          // [batch], of the first network alone
  };
  /// The mean value of the actions: of the first network, or of the smaller one in each row.
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
