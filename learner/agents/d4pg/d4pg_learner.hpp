#pragma once
// D4PG's replica, for d4pg.cpp and d4pg_captured.cpp alone.

#include <optional>
#include <stdexcept>

#include <torch/types.h>

#include "learner/agents/d4pg/d4pg_networks.hpp"
#include "learner/agents/learners/saved_replica.hpp"
#include "learner/device/step_graph.hpp"
#include "learner/nn/policy_head.hpp"

namespace troupe::learner {

class D4pg : public SavedReplica {
public:
  D4pg(const D4pgConfig& config, const D4pgSpec& spec, UpdateCapture capture)
      : config_(config), spec_(spec), networks_(config, spec), capture_(capture) {
    critic_.declare(networks_.critic_layout);
    policy_.declare(networks_.policy_layout);
    save_group("critic_", critic_, true);
    save_group("policy_", policy_, true);
    if (config.blocks.normalise_observations) {
      if (networks_.pixels)
        throw std::invalid_argument("d4pg.normalise_observations is true, but the environment "
                                    "gives pixels; it is of states: leave it out");
      normalise_states(networks_.observation_size);
    }
  }

  void build(ReplicaContext& context) override;
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override;
  void load(const TensorMap& parameters, const TensorMap& optimizer_state) override;
  at::Tensor policy_parameters() override;
  at::Tensor priorities() override { return priorities_; }

private:
  struct Inputs {
    at::Tensor observation; // as the networks want it: states, or features of the online encoder
    at::Tensor action;
    at::Tensor reward;
    at::Tensor discount;
    at::Tensor next_observation; // states, or features of the target encoder
    at::Tensor weight;           // undefined: each row counts once
  };

  Inputs prepare(const TensorMap& batch);
  const at::Tensor& encode(EncoderTape& tape, const EncoderShape::Tensors& parameters,
                           const at::Tensor& images);
  const at::Tensor& target_logits(const Inputs& in);
  RowLosses row_losses(const Inputs& in);
  void critic_backward();
  const at::Tensor& policy_value(const Inputs& in);
  double learn_critic(const Inputs& in, const at::Tensor& target_logits);
  HeadReport learn_policy(const Inputs& in, double& q_mean);
  void average_targets(std::int64_t applied);

  // An update without a read by the host
  void begin_whole(const TensorMap& batch);
  Metrics step_whole(const TensorMap& batch);
  void captured_update();
  void step_on_device(ParameterGroup& group, at::Tensor& steps, const at::Tensor& rate,
                      const at::Tensor& other_problem, std::int64_t slot);

  D4pgConfig config_;
  D4pgSpec spec_;
  D4pgNetworks networks_;
  ParameterGroup critic_;
  ParameterGroup policy_;
  EncoderShape::Tensors encoder_parameters_;
  EncoderShape::Tensors encoder_gradients_;
  EncoderShape::Tensors encoder_target_;
  std::vector<LayerTensors> critic_parameters_;
  std::vector<LayerTensors> critic_gradients_;
  std::vector<LayerTensors> critic_target_;
  std::vector<LayerTensors> policy_parameters_;
  std::vector<LayerTensors> policy_gradients_;
  std::vector<LayerTensors> policy_target_;
  std::unique_ptr<Encoder> encoder_;
  EncoderTape online_tape_;
  EncoderTape target_tape_;
  Tape critic_tape_;
  Tape target_critic_tape_;
  Tape policy_tape_;
  Tape target_policy_tape_;
  at::Tensor actions_;
  at::Tensor next_actions_;
  at::Tensor row_losses_;
  at::Tensor priorities_; // of the last weighted batch
  Workspace workspace_;

  UpdateCapture capture_;
  bool steps_whole_ = false;
  struct Captured { // its memory, always the same
    TensorMap batch;
    at::Tensor report;                     // float64 [kSlots + batch]; then the rows' losses
    at::Tensor critic_steps, policy_steps; // float32 [1], of Adam
    at::Tensor critic_rate, policy_rate;   // float32 []; undefined: they stay
    at::Tensor problem;                    // float32 [1]: 1 where the critic's step was left out
    std::int64_t updates = 0;
    std::unique_ptr<StepGraph> graph;
  };
  std::optional<Captured> captured_;
};

} // namespace troupe::learner
