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

/// A network's last layer is called "output", or is the only one: "critic1.output.bias",
/// "advantage.weight".
bool in_last_layer(const std::string& parameter);

/// The replica of an agent whose state is parameter groups, counters and a source of random
/// numbers: what a checkpoint holds of them. A derived class names its groups and counters in its
/// constructor, calls begin() first in build(), and makes the updates.
class SavedReplica : public Replica {
public:
  Input input_fn(const InputContext&) override {
    return [] { return TensorMap{}; }; // replay's batches are brought by the caller of step_fn
  }
  TensorMap parameters() override;
  TensorMap optimizer_state() override;
  void load(const TensorMap& parameters, const TensorMap& optimizer_state) override;
  at::Tensor priorities() override { return update_.rows(); }

  /// Whether updates by make_update() are captured; asked at the first one after build(). At first
  /// they are where it pays.
  void set_capture(UpdateCapture capture) { capture_ = capture; }
  std::int64_t updates() const { return updates_; } // that the parameters took
  /// Parameters with these names, and their targets, become those of `fresh`, a replica of the same
  /// agent that has made no update, and optimizers that step any of them begin again. Encoders
  /// stay, whatever `names` says.
  void begin_again(SavedReplica& fresh, const std::function<bool(const std::string&)>& names);

  /// Of the last update, during which `probe` saw its networks: "dormant_<kind>", the share of
  /// hidden units that are dormant; "gradient_norm_<kind>", of the gradients that the optimizers
  /// stepped by; "feature_rank", the effective rank of what the critic's last layer was given. The
  /// kinds are critic, policy and encoder, which is all that is neither; of encoders for pixels
  /// alone (nn/encoder.hpp) the units are not seen.
  Metrics diagnosis(const ActivationProbe& probe);

protected:
  SavedReplica() = default;
  SavedReplica(const SavedReplica&) = delete; // the names below are of its members
  SavedReplica& operator=(const SavedReplica&) = delete;

  /// `name`: prefix of the optimizer's step counter, e.g. "critic_"; that of an encoder alone is
  /// "encoder_". `target`: a checkpoint also holds the target network.
  void save_group(std::string name, ParameterGroup& group, bool target) {
    groups_.push_back({std::move(name), &group, target});
  }
  void save_counter(std::string name, std::int64_t& value) {
    counters_.emplace_back(std::move(name), &value);
  }
  /// AgentUpdate::make() of the next update; returns its metrics. `body` draws, steps
  /// and tells by in_update().
  Metrics make_update(const TensorMap& batch, int variant, const AgentUpdate::Body& body);
  AgentUpdate& in_update() { return update_; }
  /// A part of an update for `troupe timeline`, until its lifetime ends.
  collectives::Timeline::Span span(const char* name) const { return {timeline_, name}; }
  /// States of so many numbers are normalised by the moments of the states that it learns from,
  /// which a checkpoint holds and published() begins with.
  void normalise_states(std::int64_t size) {
    moments_ = RunningMoments(size);
    normalises_ = true;
  }
  RunningMoments* moments() { return normalises_ ? &moments_ : nullptr; }
  /// The states of a batch, "observation" and "next_observation", on the parameters' device and
  /// normalised where they are to be; the first ones count in the moments. Once per batch.
  std::pair<at::Tensor, at::Tensor> states(ReplicaContext& context, const TensorMap& batch);
  /// The "observation" of a batch, likewise, which does not count.
  at::Tensor state_of(const TensorMap& batch) const;
  /// The counters begin at 0, the random numbers with the context's seed. `precision`: parameters
  /// are of "float64", else of float32; what multiplies_halves() is.
  void begin(ReplicaContext& context, const std::string& precision);
  /// A network's parameters for the actors: on the CPU, behind the moments if there are any.
  at::Tensor published(const at::Tensor& flat) const;

  const at::TensorOptions& options() const { return options_; } // of parameters
  /// Whether the products of linear layers are to be of bfloat16: if `precision` said so itself.
  bool multiplies_halves() const { return multiplies_halves_; }
  Random& random() { return random_; }
  void count_updates(std::int64_t more) { updates_ += more; }

private:
  struct Group {
    std::string name;
    ParameterGroup* group = nullptr;
    bool target = false;
  };
  collectives::Timeline* timeline_ = nullptr; // of the replica; null: not recorded
  std::vector<Group> groups_;
  std::int64_t updates_ = 0;
  std::vector<std::pair<std::string, std::int64_t*>> counters_{{"updates", &updates_}};
  at::TensorOptions options_;
  bool multiplies_halves_ = false;
  Random random_{0};
  UpdateCapture capture_ = UpdateCapture::where_it_pays;
  bool begun_ = false; // an update, since build()
  AgentUpdate update_;
  RunningMoments moments_;
  bool normalises_ = false;
};

} // namespace troupe::learner
