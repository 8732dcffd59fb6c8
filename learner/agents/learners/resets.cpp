#include "learner/agents/learners/resets.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "learner/acting/collector.hpp"
#include "learner/agents/learners/saved_replica.hpp"

namespace troupe::learner {
namespace {

using MakeReplica = std::function<std::unique_ptr<Replica>()>;

/// A network's last layer is called "output", or is the only one: "critic1.output.bias",
/// "advantage.weight".
bool in_last_layer(const std::string& name) {
  return name.find(".output.") != std::string::npos
         || std::count(name.begin(), name.end(), '.') == 1;
}

class ResetReplica : public Replica {
public:
  ResetReplica(const TrainingConfig::Resets& resets, std::uint64_t seed, MakeReplica make)
      : resets_(resets), seed_(seed), make_(std::move(make)), inner_(made()) {}

  void build(ReplicaContext& context) override { inner_->build(context); }
  Input input_fn(const InputContext& context) override { return inner_->input_fn(context); }
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override {
    const std::int64_t before = inner_->updates() / resets_.period;
    Metrics metrics = inner_->step_fn(context, batch);
    const std::int64_t number = inner_->updates() / resets_.period;
    if (number > before
        && (resets_.last_update == 0 || number * resets_.period <= resets_.last_update))
      reset(number, context.device());
    return metrics;
  }
  TensorMap parameters() override { return inner_->parameters(); }
  TensorMap optimizer_state() override { return inner_->optimizer_state(); }
  void load(const TensorMap& parameters, const TensorMap& optimizer_state) override {
    inner_->load(parameters, optimizer_state);
  }
  Metrics evaluate(ReplicaContext& context) override { return inner_->evaluate(context); }
  at::Tensor priorities() override { return inner_->priorities(); }
  at::Tensor policy_parameters() override { return inner_->policy_parameters(); }

private:
  std::unique_ptr<SavedReplica> made() const {
    std::unique_ptr<Replica> replica = make_();
    auto* saved = dynamic_cast<SavedReplica*>(replica.get());
    if (saved == nullptr)
      throw std::invalid_argument(
          "learner.resets.period is " + std::to_string(resets_.period)
          + ", but the networks of this agent are its own: only an agent whose replica is a "
            "SavedReplica (learner/agents/learners) can begin again; leave the block out");
    (void)replica.release();
    return std::unique_ptr<SavedReplica>(saved);
  }

  void reset(std::int64_t number, at::Device device) {
    ReplicaContext alone(nullptr, split_seed(seed_, {static_cast<std::uint64_t>(number)}), device);
    const auto fresh = made();
    fresh->build(alone);
    inner_->begin_again(*fresh, [&](const std::string& name) {
      return resets_.what != "last_layers" || in_last_layer(name);
    });
  }

  TrainingConfig::Resets resets_;
  std::uint64_t seed_;
  MakeReplica make_;
  std::unique_ptr<SavedReplica> inner_;
};

} // namespace

std::unique_ptr<Replica> with_resets(const TrainingConfig::Resets& resets, std::uint64_t seed,
                                     MakeReplica make) {
  if (resets.period == 0)
    return make();
  return std::make_unique<ResetReplica>(resets, seed, std::move(make));
}

} // namespace troupe::learner
