// One training program for every strategy. Only the command line names the strategy:
//   any_strategy "mirrored replicas=4"
//   any_strategy "backup_workers replicas=5 backup_workers=1"
//   torchrun-like variables, TF_CONFIG, mpirun or srun: any_strategy "multi_worker backend=tcp"
// Prints one line: the strategy, the number of replicas, and the loss on held-out rows.
#include <iostream>

#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include "collectives/rendezvous/process_topology.hpp"
#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/nn/global_batch_norm.hpp"
#include "learner/replicas/replicator.hpp"
#include "learner/replicas/strategy_options.hpp"

namespace {

using namespace troupe::learner;

constexpr std::int64_t kGlobalBatch = 48;

/// Pictures of 8x8 with a bar, labelled with its direction, one of 4.
TensorMap bars(std::uint64_t seed, std::int64_t rows) {
  torch::manual_seed(seed);
  const auto way = torch::randint(4, {rows}, at::kLong);
  const auto place = torch::randint(2, 6, {rows}, at::kLong);
  auto x = torch::randn({rows, 1, 8, 8}, at::kDouble) * 0.5;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto at = place[row].item<std::int64_t>();
    for (std::int64_t i = 0; i < 8; ++i)
      switch (way[row].item<std::int64_t>()) {
      case 0:
        x[row][0][at][i] += 1;
        break;
      case 1:
        x[row][0][i][at] += 1;
        break;
      case 2:
        x[row][0][i][(i + at) % 8] += 1;
        break;
      default:
        x[row][0][i][(15 - i - at) % 8] += 1;
      }
  }
  return {{"x", x}, {"y", way}};
}

/// The 200 global batches that every run uses, generated before there are replicas, because
/// LibTorch's generator is shared by the whole process.
std::vector<TensorMap> all_batches(int steps) {
  std::vector<TensorMap> batches;
  for (int step = 0; step < steps; ++step)
    batches.push_back(bars(static_cast<std::uint64_t>(step), kGlobalBatch));
  return batches;
}

class Classifier {
public:
  explicit Classifier(ReplicaContext& context) {
    network_ = torch::nn::Sequential(
        torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3).bias(false)), torch::nn::BatchNorm2d(8),
        torch::nn::ReLU(), torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 8, 3).bias(false)),
        torch::nn::BatchNorm2d(8), torch::nn::ReLU(), torch::nn::Flatten(),
        torch::nn::Linear(128, 4));
    network_->to(at::kDouble);
    const at::NoGradGuard guard;
    for (auto& item : network_->named_parameters()) { // equal on all replicas without a generator
      auto& parameter = item.value();
      if (parameter.dim() > 1)
        parameter.copy_(
            (torch::arange(parameter.numel(), at::kDouble) * 2.399).sin().view_as(parameter) * 0.2);
      else if (item.key().ends_with("bias"))
        parameter.zero_();
    }
    if (context.has_collectives())
      convert_batch_norm(*network_, context);
    optimizer_ = context.wrap_optimizer(std::make_unique<torch::optim::SGD>(
        network_->parameters(), torch::optim::SGDOptions(0.02).momentum(0.5)));
  }

  TensorMap step(const TensorMap& batch) {
    optimizer_->zero_grad();
    const auto loss = loss_of(batch);
    loss.backward();
    optimizer_->step();
    return {{"loss", loss.detach()}};
  }

  double evaluate(const TensorMap& rows) {
    const at::NoGradGuard guard;
    network_->eval();
    return loss_of(rows).item<double>();
  }

private:
  at::Tensor loss_of(const TensorMap& batch) {
    return torch::nn::functional::cross_entropy(network_->forward(batch.at("x")), batch.at("y"));
  }
  torch::nn::Sequential network_{nullptr};
  std::unique_ptr<WrappedOptimizer> optimizer_;
};

int train(const std::string& strategy, int steps) {
  const auto place = troupe::collectives::topology_of_this_process();
  const auto batches = all_batches(steps);
  const auto unseen = bars(1'000'000, 480);
  Replicator replicator(make_strategy(parse_strategy(strategy), place));
  const auto classifiers = replicator.build<Classifier>(
      [](ReplicaContext& context) { return std::make_shared<Classifier>(context); });
  const auto input = replicator.input([&](const InputContext& context) {
    const auto rows = context.per_replica_batch_size(kGlobalBatch);
    const int parts = static_cast<int>(kGlobalBatch / rows);
    // Replicas that do not step in lockstep begin at different batches.
    const auto first = static_cast<std::size_t>(context.input_pipeline_id / parts);
    return [&, parts, step = first, part = context.input_pipeline_id % parts]() mutable {
      return part_of_batch(batches[step++ % batches.size()], part, parts);
    };
  });
  replicator.call([&](ReplicaContext& context) { // only the strategy synchronises the steps
    for (int step = 0; step < steps; ++step)
      classifiers.of(context).step(input->next(context));
    return TensorMap{};
  });
  if (replicator.is_chief()) {
    std::cout.precision(10);
    std::cout << strategy << " | replicas " << replicator.num_replicas() << " | loss "
              << classifiers[0].evaluate(unseen) << std::endl;
  }
  replicator.call([](ReplicaContext& context) { // no rank ends while others need it
    if (context.has_collectives())
      context.barrier();
    return TensorMap{};
  });
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::cerr
        << "usage: any_strategy STRATEGY [STEPS], e.g. any_strategy \"mirrored replicas=2\"\n";
    return 2;
  }
  try {
    return train(argv[1], argc == 3 ? std::stoi(argv[2]) : 200);
  } catch (const std::invalid_argument& error) {
    std::cerr << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
