#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/timeline.hpp"
#include "learner/agents/learners/agent_update.hpp"
#include "learner/agents/learners/parameter_group.hpp"
#include "learner/nn/running_moments.hpp"
#include "learner/replicas/replica.hpp"

namespace troupe::learner {

class ActivationProbe;

/// Whether the parameter belongs to a network's last layer. That layer is called "output" or is the
/// network's only one: "critic1.output.bias", "advantage.weight".
bool in_last_layer(const std::string& parameter);

/// The replica of an agent whose state consists of parameter groups, counters and a random
/// generator, which this class saves in checkpoints. A derived class registers its groups and
/// counters in its constructor, calls begin() first in build(), and makes the updates.
class SavedReplica : public Replica {
public:
  Input input_fn(const InputContext&) override {
    return [] { return TensorMap{}; }; // the caller of step_fn provides replay's batches
  }
  TensorMap parameters() override;
  TensorMap optimizer_state() override;
  void load(const TensorMap& parameters, const TensorMap& optimizer_state) override;
  at::Tensor priorities() override { return update_.rows(); }

  /// Sets whether make_update() captures updates; evaluated at the first update after build(). By
  /// default they are captured where it pays.
  void set_capture(UpdateCapture capture) { capture_ = capture; }
  /// Must be called before action_values() if updates follow: it may replace the tensors that
  /// captured updates use.
  void forget_captures() { update_.forget_captures(); }
  std::int64_t updates() const { return updates_; } // that the parameters have received
  /// Resets the parameters selected by `names`, and their targets, to those of `fresh`, a replica
  /// of the same agent that has made no update. Resets optimizers that step any of them. Never
  /// resets encoders.
  void begin_again(SavedReplica& fresh, const std::function<bool(const std::string&)>& names);

  /// Metrics of the last update, for which `probe` recorded the activations: "dormant_<kind>", the
  /// fraction of hidden units that are dormant; "gradient_norm_<kind>", the norm of the gradients
  /// that the optimizers used; "feature_rank", the effective rank of the inputs of the critic's
  /// last layer; "action_saturation", the fraction of the components of the policy's mean actions
  /// beyond ±0.99, if they are the tanh of its outputs. The kinds are critic, policy and encoder,
  /// which is everything else. Units of pixel encoders (nn/encoder.hpp) are not counted.
  Metrics diagnosis(const ActivationProbe& probe);

protected:
  SavedReplica() = default;
  SavedReplica(const SavedReplica&) = delete; // the pointers below refer to its members
  SavedReplica& operator=(const SavedReplica&) = delete;

  /// Registers a group for checkpoints. `name`: prefix of the optimizer's step counter, e.g.
  /// "critic_"; for a group that is only an encoder it must be "encoder_". `target`: checkpoints
  /// also contain the target network. `tanh_actions`: if the group is a policy whose mean action is
  /// the tanh of the first outputs of an Mlp or SphericalNetwork, their number, for diagnosis();
  /// it must not be larger than the number of outputs.
  void save_group(std::string name, ParameterGroup& group, bool target,
                  std::int64_t tanh_actions = 0) {
    groups_.push_back({std::move(name), &group, target, tanh_actions});
  }
  void save_counter(std::string name, std::int64_t& value) {
    counters_.emplace_back(std::move(name), &value);
  }
  /// Makes the next update with AgentUpdate::make() and returns its metrics. `body` must draw, step
  /// and report through in_update().
  Metrics make_update(const TensorMap& batch, int variant, const AgentUpdate::Body& body);
  /// Counts the updates that the group's optimizer has applied after make_update(), including those
  /// of other replicas, and adds the metric "gradient_norm". Returns how many multiples of `period`
  /// updates have been reached, for averaging targets.
  std::int64_t finish_update(ParameterGroup& group, Metrics& metrics, std::int64_t period = 1);
  AgentUpdate& in_update() { return update_; }
  /// Records a part of an update for `troupe timeline` until the span is destroyed.
  collectives::Timeline::Span span(const char* name) const { return {timeline_, name}; }
  /// Normalises states of `size` numbers by running moments of the states in batches. Checkpoints
  /// contain the moments, and published() puts them before the parameters.
  void normalise_states(std::int64_t size) {
    moments_ = RunningMoments(size);
    normalises_ = true;
  }
  RunningMoments* moments() { return normalises_ ? &moments_ : nullptr; }
  /// Returns the batch's "observation" and "next_observation" on the parameters' device, normalised
  /// if enabled. Adds "observation" to the moments; call it once per batch.
  std::pair<at::Tensor, at::Tensor> states(ReplicaContext& context, const TensorMap& batch);
  /// Returns the batch's "observation" in the same form, without adding it to the moments.
  at::Tensor state_of(const TensorMap& batch) const;
  /// Resets the counters and seeds the random numbers from the context. `precision` determines the
  /// type of the parameters ("float64", otherwise float32) and rounding().
  void begin(ReplicaContext& context, const std::string& precision);
  /// A network's parameters for the actors, on the CPU, preceded by the moments if there are any.
  at::Tensor published(const at::Tensor& flat) const;

  const at::TensorOptions& options() const { return options_; } // of parameters
  Rounding rounding() const { return rounding_; }               // of linear layers
  Random& random() { return random_; }
  void count_updates(std::int64_t more) { updates_ += more; }

private:
  struct Group {
    std::string name;
    ParameterGroup* group = nullptr;
    bool target = false;
    std::int64_t tanh_actions = 0;
  };
  collectives::Timeline* timeline_ = nullptr; // the replica's; null: nothing is recorded
  std::vector<Group> groups_;
  std::int64_t updates_ = 0;
  std::vector<std::pair<std::string, std::int64_t*>> counters_{{"updates", &updates_}};
  at::TensorOptions options_;
  Rounding rounding_ = Rounding::none;
  Random random_{0};
  UpdateCapture capture_ = UpdateCapture::where_it_pays;
  bool begun_ = false; // an update has been made since build()
  AgentUpdate update_;
  RunningMoments moments_;
  bool normalises_ = false;
};

} // namespace troupe::learner
