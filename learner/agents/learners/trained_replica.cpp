#include "learner/agents/learners/trained_replica.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "learner/acting/collector.hpp"
#include "learner/agents/learners/saved_replica.hpp"
#include "learner/nn/activation_probe.hpp"

namespace troupe::learner {
namespace {

using MakeReplica = std::function<std::unique_ptr<Replica>()>;

class TrainedReplica : public Replica {
public:
  TrainedReplica(const TrainingConfig& config, std::uint64_t seed, MakeReplica make)
      : resets_(config.resets),
        diagnostics_period_(config.diagnostics_period),
        seed_(seed),
        make_(std::move(make)),
        inner_(made()) {}

  void build(ReplicaContext& context) override { inner_->build(context); }
  Input input_fn(const InputContext& context) override { return inner_->input_fn(context); }
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override {
    const std::int64_t before = inner_->updates();
    Metrics metrics = diagnosed(context, batch);
    if (resets_.period == 0)
      return metrics;
    const std::int64_t number = inner_->updates() / resets_.period;
    if (number > before / resets_.period
        && (resets_.last_update == 0 || number * resets_.period <= resets_.last_update))
      reset(number, context.device());
    return metrics;
  }
  TensorMap parameters() override { return inner_->parameters(); }
  TensorMap optimizer_state() override { return inner_->optimizer_state(); }
  void load(const TensorMap& parameters, const TensorMap& optimizer_state) override {
    inner_->load(parameters, optimizer_state);
    next_diagnosis_ = 0;
  }
  Metrics evaluate(ReplicaContext& context) override { return inner_->evaluate(context); }
  TensorMap pictures() override { return inner_->pictures(); }
  at::Tensor priorities() override { return inner_->priorities(); }
  at::Tensor action_values(const TensorMap& batch) override {
    inner_->forget_captures();
    return inner_->action_values(batch);
  }
  at::Tensor policy_parameters() override { return inner_->policy_parameters(); }

private:
  Metrics diagnosed(ReplicaContext& context, const TensorMap& batch) {
    Metrics metrics;
    if (diagnostics_period_ == 0 || inner_->updates() < next_diagnosis_) {
      metrics = inner_->step_fn(context, batch);
    } else {
      next_diagnosis_ = inner_->updates() + (diagnostics_period_ | 1);
      const ActivationProbe probe;
      metrics = inner_->step_fn(context, batch);
      for (const auto& [name, value] : inner_->diagnosis(probe))
        diagnosis_[name] = value;
    }
    metrics.insert(diagnosis_.begin(), diagnosis_.end());
    return metrics;
  }

  std::unique_ptr<SavedReplica> made() const {
    std::unique_ptr<Replica> replica = make_();
    auto* saved = dynamic_cast<SavedReplica*>(replica.get());
    if (saved == nullptr)
      throw std::invalid_argument(
          (resets_.period > 0
               ? "learner.resets.period is " + std::to_string(resets_.period)
               : "learner.diagnostics_period is " + std::to_string(diagnostics_period_))
          + ", but this agent has its own kind of networks: the key needs an agent whose replica "
            "is a SavedReplica (learner/agents/learners); leave the key out");
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
  std::int64_t diagnostics_period_;
  std::int64_t next_diagnosis_ = 0; // number of the update
  Metrics diagnosis_;
  std::uint64_t seed_;
  MakeReplica make_;
  std::unique_ptr<SavedReplica> inner_;
};

} // namespace

std::unique_ptr<Replica> trained_replica(const TrainingConfig& config, std::uint64_t seed,
                                         MakeReplica make) {
  if (config.resets.period == 0 && config.diagnostics_period == 0)
    return make();
  return std::make_unique<TrainedReplica>(config, seed, std::move(make));
}

} // namespace troupe::learner
