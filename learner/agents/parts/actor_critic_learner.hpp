#pragma once

#include <cstdint>
#include <string>

#include "learner/agents/parts/actor_critic.hpp"
#include "learner/agents/parts/exploration.hpp"
#include "learner/agents/parts/parameter_group.hpp"
#include "learner/replicas/replica.hpp"

namespace troupe::learner {

/// A learning rate that changes linearly over the updates.
struct RateConfig {
  double learning_rate = 2.5e-4;
  double learning_rate_end = 0;
  std::int64_t learning_rate_updates = 0; // of its change; 0: it stays

  /// Its keys in an agent's block have these names.
  void add_members(Members& members);
};

/// The replica of an agent that learns an ActorCritic from sequences: its parameters, what a
/// checkpoint holds, and the checks of a batch. What derives from it makes the update.
class ActorCriticLearner : public Replica {
public:
  struct Setting {
    std::string agent;
    RateConfig rate;
    double gradient_norm = 0;
    std::string precision;
  };
  ActorCriticLearner(Setting setting, ActorCritic network,
                     const replay::TransitionSpec& transitions);

  void build(ReplicaContext& context) override;
  Input input_fn(const InputContext&) override {
    return [] { return TensorMap{}; }; // replay's batches are brought by the caller of step_fn
  }
  /// Adds the metrics "gradient_norm" and "sample_age" (updates since the actions were chosen).
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) final;
  TensorMap parameters() override;
  TensorMap optimizer_state() override;
  void load(const TensorMap& parameters, const TensorMap& optimizer_state) override;
  at::Tensor policy_parameters() override;

protected:
  /// Steps from a batch of sequences that was checked.
  virtual Metrics update(const TensorMap& batch) = 0;

  /// The batch's observations [batch * (steps + 1), …], as the network takes them.
  at::Tensor observations(const TensorMap& batch) const;
  /// A tensor [batch, steps, …] as [batch * steps, …], as the network takes it.
  at::Tensor flat(const at::Tensor& tensor) const { return tensor.flatten(0, 1).to(options_); }
  /// Makes the loss's gradient and a step of the optimizer.
  void descend(const at::Tensor& loss);

  const ActorCritic& network() const { return network_; }
  const Leaves& leaves() const { return leaves_; }
  const at::TensorOptions& options() const { return options_; }
  double discount() const { return transitions_.discount; }
  Random& random() { return random_; }

private:
  Setting setting_;
  ActorCritic network_;
  replay::TransitionSpec transitions_;
  ParameterGroup group_;
  at::TensorOptions options_;
  Leaves leaves_;
  Random random_{0};
  std::int64_t updates_ = 0;
};

} // namespace troupe::learner
