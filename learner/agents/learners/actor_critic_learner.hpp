#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/learners/group_replica.hpp"
#include "learner/agents/parts/actor_critic.hpp"
#include "learner/agents/parts/exploration.hpp"

namespace troupe::learner {

/// The weight of the policy's entropy in the loss: `start`, or with `steps` a linear schedule from
/// `start` to `end`.
struct EntropyConfig {
  double start = 0.01;
  double end = 0;
  std::int64_t steps = 0; // agent steps; 0: constant

  /// Adds the keys of an agent's block: entropy, entropy_end, entropy_steps.
  void add_members(Members& members);
  std::vector<OptionProblem> problems(const std::string& agent) const;
  double at(std::int64_t step) const;
};

/// The replica of an agent that trains an ActorCritic on sequences. It checks the batches; a
/// derived class implements the update.
class ActorCriticLearner : public GroupReplica {
public:
  struct Setting {
    double learning_rate = 0;
    double adam_epsilon = kAdamEpsilon;
    double gradient_norm = 0;
    std::string precision;
    EntropyConfig entropy;
    std::int64_t batch_size = 0; // sequences per update, over all replicas
    std::int64_t item_uses = 1;  // updates that use each sequence
  };
  ActorCriticLearner(const Setting& setting, ActorCritic network,
                     const replay::TransitionSpec& transitions);

  /// Adds the metrics "gradient_norm" and "sample_age" (updates since the actions were chosen).
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) final;

protected:
  /// Makes an update from a checked batch of sequences.
  virtual Metrics update(const TensorMap& batch) = 0;

  /// The batch's observations as network input, [batch * (steps + 1), …].
  Observed observations(const TensorMap& batch) const;
  /// The memory of a recurrent network at the beginning of the batch's sequences.
  ActorCritic::Memory memory(const TensorMap& batch) const;
  /// Reshapes a tensor [batch, steps, …] to the network's [batch * steps, …].
  at::Tensor flat(const at::Tensor& tensor) const { return tensor.flatten(0, 1).to(options()); }
  /// Computes the gradient of the loss and makes an optimizer step.
  void descend(const at::Tensor& loss);

  /// The weight of the entropy in this update. Each step of a sequence counts as an agent step,
  /// once for all updates that use the sequence.
  double entropy_weight() const {
    const std::int64_t batches = updates() / item_uses_ * workers_;
    return entropy_.at(batches * batch_size_ * transitions_.sequence_steps);
  }

  const ActorCritic& network() const { return network_; }
  double discount() const { return transitions_.discount; }

private:
  at::Tensor initial(at::Generator& generator) const override {
    return network_.initial(generator);
  }

  ActorCritic network_;
  replay::TransitionSpec transitions_;
  EntropyConfig entropy_;
  std::int64_t batch_size_;
  std::int64_t item_uses_;
  std::int64_t workers_ = 1; // replicas or sync groups that use batches of their own
};

} // namespace troupe::learner
