// A learner workload in one file: a small network classifies points of two spirals. The platform's
// learners train it as two replicas that average their gradients, evaluate it on held-out points,
// and write a checkpoint. If a checkpoint is named, the program continues from it.
//   own_workload runs/spirals
//   own_workload runs/spirals runs/spirals/checkpoints/600 1200
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <numbers>
#include <string>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include "actors/run/run.hpp"
#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/nn/parameter_layout.hpp"

namespace {

using namespace troupe;
using namespace troupe::learner;

constexpr std::int64_t kBatch = 128; // rows over all replicas
constexpr std::int64_t kHeldOut = 1000;

struct Points {
  at::Tensor where; // [rows, 2]
  at::Tensor which; // [rows], 0 or 1: the spiral
};

/// Points of both spirals, which depend only on the seed.
Points draw(std::int64_t rows, std::uint64_t seed) {
  auto random = at::make_generator<at::CPUGeneratorImpl>(seed);
  const at::Tensor which = at::randint(2, {rows}, random, torch::kLong);
  const at::Tensor along = at::rand({rows}, random, torch::kFloat).sqrt();
  const at::Tensor angle = 3 * std::numbers::pi * along + std::numbers::pi * which;
  const at::Tensor noise = at::randn({rows, 2}, random, torch::kFloat) * 0.02;
  return {at::stack({along * angle.cos(), along * angle.sin()}, 1) + noise, which};
}

struct Network : torch::nn::Module {
  torch::nn::Linear first{2, 64};
  torch::nn::Linear second{64, 64};
  torch::nn::Linear third{64, 2};

  Network() {
    register_module("first", first);
    register_module("second", second);
    register_module("third", third);
  }
  at::Tensor forward(const at::Tensor& x) { return third(at::relu(second(at::relu(first(x))))); }
};

class Spirals : public Replica {
public:
  void build(ReplicaContext& context) override {
    const at::NoGradGuard no_gradient;
    auto random =
        at::make_generator<at::CPUGeneratorImpl>(1); // threads share LibTorch's default generator
    for (at::Tensor& parameter : network_.parameters()) {
      const double bound = 1 / std::sqrt(static_cast<double>(parameter.size(-1)));
      parameter.uniform_(-bound, bound, random);
    }
    optimizer_ = context.wrap_optimizer(std::make_unique<torch::optim::Adam>(
        network_.parameters(), torch::optim::AdamOptions(3e-3)));
  }

  /// Each replica draws its share of every batch. A resumed run continues with the next batch.
  Input input_fn(const InputContext& context) override {
    const std::int64_t rows = context.per_replica_batch_size(kBatch);
    const auto part = static_cast<std::uint64_t>(context.input_pipeline_id);
    return [=, step = static_cast<std::uint64_t>(context.first_step)]() mutable {
      const Points points = draw(rows, 1'000 + 100 * step++ + part);
      return TensorMap{{"where", points.where}, {"which", points.which}};
    };
  }

  Metrics step_fn(ReplicaContext&, const TensorMap& batch) override {
    optimizer_->zero_grad();
    const at::Tensor loss =
        at::cross_entropy_loss(network_.forward(batch.at("where")), batch.at("which"));
    loss.backward();
    optimizer_->step(); // first averages the gradients over the replicas
    return {{"loss", loss.item<double>()}};
  }

  /// Each replica evaluates its share of the held-out points.
  Metrics evaluate(ReplicaContext& context) override {
    const at::NoGradGuard no_gradient;
    const Points all = draw(kHeldOut, 1);
    const int replicas = context.num_replicas_in_sync();
    const int part = context.rank_in_sync_group();
    const at::Tensor right = network_.forward(all.where.tensor_split(replicas)[part])
                                 .argmax(1)
                                 .eq(all.which.tensor_split(replicas)[part]);
    const at::Tensor sum = context.all_reduce(right.sum().to(at::kDouble), ReduceOp::sum);
    return {{"accuracy", sum.item<double>() / kHeldOut}};
  }

  TensorMap parameters() override {
    TensorMap named;
    for (const auto& item : network_.named_parameters())
      named[item.key()] = item.value().detach();
    return named;
  }
  TensorMap optimizer_state() override { return optimizer_->state(); }
  void load(const TensorMap& saved, const TensorMap& state) override {
    const at::NoGradGuard no_gradient;
    check_by_name("parameters", saved, parameters());
    copy_by_name(saved, parameters());
    optimizer_->load(state);
  }

private:
  Network network_;
  std::unique_ptr<WrappedOptimizer> optimizer_;
};

} // namespace

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : "runs/spirals";
  const std::string checkpoint = argc > 2 ? argv[2] : "";
  actors::RunConfig config;
  config.workload = [] { return std::make_unique<Spirals>(); };
  config.learner.replicas = 2;
  config.stop.updates = argc > 3 ? std::strtol(argv[3], nullptr, 10) : 600;
  config.evaluation.period = 200; // in updates
  config.checkpoint.minutes = 0;  // only at the end
  const actors::RunCallbacks callbacks{
      .evaluated =
          [](const actors::Evaluated& now) {
            std::cout << "after " << now.updates << " updates: accuracy "
                      << now.metrics.at("accuracy") << std::endl;
          },
      .log = [](const std::string& level,
                const std::string& text) { std::cerr << level << ": " << text << std::endl; }};
  const std::atomic<bool> stop = false;
  const actors::RunResult result = actors::run(config, folder, checkpoint, {}, callbacks, stop);
  if (!result.error.empty())
    throw std::runtime_error(result.error);
  std::cout << "checkpoint " << result.checkpoint.string() << std::endl;
  return 0;
} catch (const std::exception& error) {
  std::cerr << "own_workload: " << error.what() << std::endl;
  return 1;
}
