#pragma once

#include <cstdint>
#include <vector>

#include "learner/agents/learners/agent_update.hpp"
#include "learner/agents/learners/parameter_group.hpp"
#include "learner/nn/categorical.hpp"
#include "learner/nn/spherical_network.hpp"

namespace troupe::learner {

/// One or two SimbaV2 networks that estimate the distribution of the value of a state and an
/// action, and their targets. Must be used on its replica's thread.
class SphericalCritic {
public:
  struct Shape {
    std::int64_t states = 0;
    std::int64_t actions = 0;
    std::int64_t width = 0;
    int blocks = 0;
    int critics = 1; // 1, or 2 of which the smaller mean of each row counts
    Support support{};
  };
  explicit SphericalCritic(const Shape& shape);

  void build(ReplicaContext& context, const at::TensorOptions& options, at::Generator& generator,
             const Training& training);
  ParameterGroup& group() { return group_; }

  /// The smaller mean of the networks, [batch].
  at::Tensor smaller_value(const at::Tensor& state, const at::Tensor& action) {
    return means(smaller_logits(parameters_, state, action));
  }
  /// Logits of the target networks, [batch, atoms].
  at::Tensor target_logits(const at::Tensor& state, const at::Tensor& action) {
    return smaller_logits(targets_, state, action);
  }
  struct Target {
    at::Tensor logits, reward, discount; // value: reward + discount * (value of the logits)
  };
  /// Makes a step on the cross entropies, summed over the critics. `weight` [batch] may be
  /// undefined. Reports the metric "critic_loss".
  void learn(AgentUpdate& update, const at::Tensor& state, const at::Tensor& action,
             const Target& target, const at::Tensor& weight);
  /// [batch] the mean of the critics' cross entropies in the last batch.
  const at::Tensor& row_losses() const { return row_losses_; }

  struct Value {
    at::Tensor mean;            // []
    at::Tensor action_gradient; // of the mean, [batch, action size]
  };
  Value value(const at::Tensor& state, const at::Tensor& action);

private:
  at::Tensor smaller_logits(const std::vector<SphericalNetwork::Tensors>& parameters,
                            const at::Tensor& state, const at::Tensor& action);
  at::Tensor means(const at::Tensor& logits) const; // [batch]

  Shape shape_;
  std::vector<SphericalNetwork> networks_;
  ParameterGroup group_;
  std::vector<SphericalNetwork::Tensors> parameters_, gradients_, targets_;
  SphericalNetwork::Trace trace_;
  Workspace workspace_;
  at::Tensor row_losses_;
};

} // namespace troupe::learner
