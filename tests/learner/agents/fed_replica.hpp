#pragma once

#include <memory>
#include <utility>

#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"

namespace troupe::tests {

inline constexpr std::int64_t kBatch = 16;

/// An agent's replica that takes its input from a fixed stream of batches.
class FedReplica : public learner::Replica {
public:
  FedReplica(std::unique_ptr<learner::Replica> inner, replay::TransitionSpec spec)
      : spec_(std::move(spec)), inner_(std::move(inner)) {}
  void build(learner::ReplicaContext& context) override { inner_->build(context); }
  learner::Input input_fn(const learner::InputContext& context) override {
    const std::int64_t share = context.per_replica_batch_size(kBatch);
    const std::int64_t first = share * context.input_pipeline_id;
    return [this, share, first, step = std::uint64_t{0}]() mutable {
      learner::TensorMap batch = random_batch(spec_, kBatch, 10 * step++);
      for (auto& [name, tensor] : batch)
        tensor = tensor.narrow(0, first, share).contiguous();
      return batch;
    };
  }
  learner::Metrics step_fn(learner::ReplicaContext& context,
                           const learner::TensorMap& batch) override {
    return inner_->step_fn(context, batch);
  }
  learner::TensorMap parameters() override { return inner_->parameters(); }
  learner::TensorMap optimizer_state() override { return inner_->optimizer_state(); }
  void load(const learner::TensorMap& parameters, const learner::TensorMap& state) override {
    inner_->load(parameters, state);
  }

private:
  replay::TransitionSpec spec_;
  std::unique_ptr<learner::Replica> inner_;
};

} // namespace troupe::tests
