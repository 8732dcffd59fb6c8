#pragma once

#include <cstdint>
#include <string>

#include "learner/agents/learners/group_replica.hpp"
#include "learner/agents/parts/actor_critic.hpp"
#include "learner/agents/parts/exploration.hpp"

namespace troupe::learner {

/// The replica of an agent that learns an ActorCritic from sequences, and the checks of a batch.
/// What derives from it makes the update.
class ActorCriticLearner : public GroupReplica {
public:
  struct Setting {
    double learning_rate = 0;
    double gradient_norm = 0;
    std::string precision;
  };
  ActorCriticLearner(const Setting& setting, ActorCritic network,
                     const replay::TransitionSpec& transitions);

  /// Adds the metrics "gradient_norm" and "sample_age" (updates since the actions were chosen).
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) final;

protected:
  /// Steps from a batch of sequences that was checked.
  virtual Metrics update(const TensorMap& batch) = 0;

  /// The batch's observations [batch * (steps + 1), …], as the network takes them.
  Observed observations(const TensorMap& batch) const;
  /// What a recurrent network remembered when the batch's sequences began.
  ActorCritic::Memory memory(const TensorMap& batch) const;
  /// A tensor [batch, steps, …] as [batch * steps, …], as the network takes it.
  at::Tensor flat(const at::Tensor& tensor) const { return tensor.flatten(0, 1).to(options()); }
  /// Makes the loss's gradient and a step of the optimizer.
  void descend(const at::Tensor& loss);

  const ActorCritic& network() const { return network_; }
  double discount() const { return transitions_.discount; }

private:
  at::Tensor initial(at::Generator& generator) const override {
    return network_.initial(generator);
  }

  ActorCritic network_;
  replay::TransitionSpec transitions_;
};

} // namespace troupe::learner
