#pragma once
// A small regression in float64 as a Replica. The whole computation is known, so runs can be
// compared number by number. Include LibTorch's optimizer and tests/doctest_torch.hpp first.

#include <ATen/CPUGeneratorImpl.h>
#include <torch/optim/adam.h>

#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/replicas/replica.hpp"

namespace troupe::learner {

class MlpReplica : public Replica {
public:
  static constexpr std::int64_t kGlobalBatch = 32;

  void build(ReplicaContext& context) override {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(context.seed());
    const auto make = [&](at::IntArrayRef shape) {
      return torch::randn(shape, generator, at::kDouble).mul_(0.3).requires_grad_();
    };
    weights_ = {make({4, 16}), make({16}), make({16, 2}), make({2})};
    optimizer_ = context.wrap_optimizer(
        std::make_unique<torch::optim::Adam>(weights_, torch::optim::AdamOptions(0.01)));
  }

  /// The same global batches for any number of pipelines, each of which takes its own rows.
  Input input_fn(const InputContext& context) override {
    const auto rows = context.per_replica_batch_size(kGlobalBatch);
    return [=, generator = at::make_generator<at::CPUGeneratorImpl>(7)]() mutable {
      const auto x = torch::randn({kGlobalBatch, 4}, generator, at::kDouble);
      const auto mine = x.narrow(0, context.input_pipeline_id * rows, rows);
      return TensorMap{{"x", mine}, {"y", mine.sin().sum(1, true).expand({rows, 2}).clone()}};
    };
  }

  Metrics step_fn(ReplicaContext&, const TensorMap& batch) override {
    optimizer_->zero_grad();
    const auto hidden = (batch.at("x").matmul(weights_[0]) + weights_[1]).tanh();
    const auto loss = (hidden.matmul(weights_[2]) + weights_[3] - batch.at("y")).pow(2).mean();
    loss.backward();
    optimizer_->step();
    return {{"loss", loss.item<double>()}};
  }

  TensorMap parameters() override {
    TensorMap result;
    for (std::size_t i = 0; i < weights_.size(); ++i)
      result["weight" + std::to_string(i)] = weights_[i].detach();
    return result;
  }
  TensorMap optimizer_state() override { return {}; }
  void load(const TensorMap&, const TensorMap&) override {}

protected:
  std::vector<at::Tensor> weights_;
  std::unique_ptr<WrappedOptimizer> optimizer_;
};

/// Greatest |a - b| relative to the greatest |b|, over all tensors.
inline double difference(const TensorMap& a, const TensorMap& b) {
  double worst = 0;
  for (const auto& [name, tensor] : b)
    worst = std::max(worst, (a.at(name) - tensor).abs().max().item<double>()
                                / tensor.abs().max().item<double>());
  return worst;
}

} // namespace troupe::learner
