// Data-parallel training for readers who know LibTorch. Everything that is not part of LibTorch is
// marked.
//   data_parallel                                          two replicas as threads of this process
//   RANK=0 WORLD_SIZE=2 … data_parallel "multi_worker"     one replica per process; also under
//                                                          mpirun, …
#include <iostream>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include <collectives/rendezvous/process_topology.hpp> // Troupe
#include <learner/gradients/wrapped_optimizer.hpp>     // Troupe
#include <learner/replicas/replicator.hpp>             // Troupe
#include <learner/replicas/strategy_options.hpp>       // Troupe

namespace {

using namespace troupe::learner;

struct Model {
  explicit Model(ReplicaContext& context) {
    torch::manual_seed(1);
    network = torch::nn::Sequential(torch::nn::Linear(2, 32), torch::nn::Tanh(),
                                    torch::nn::Linear(32, 1));
    optimizer = context.wrap_optimizer(std::make_unique<torch::optim::SGD>( // Troupe: wrapped
        network->parameters(), torch::optim::SGDOptions(0.2)));
  }
  TensorMap step(const TensorMap& batch) {
    optimizer->zero_grad();
    const auto loss = (network->forward(batch.at("x")) - batch.at("y")).pow(2).mean();
    loss.backward();
    optimizer->step();
    return {{"loss", loss.detach()}};
  }
  torch::nn::Sequential network{nullptr};
  std::unique_ptr<WrappedOptimizer> optimizer;
};

/// Each replica reads its own share of every batch of 64.
Input read_points(const InputContext& context) {
  const auto rows = context.per_replica_batch_size(64);
  return [=, step = 0]() mutable {
    auto numbers = at::make_generator<at::CPUGeneratorImpl>( // threads share the default one
        static_cast<std::uint64_t>(100 * ++step + context.input_pipeline_id));
    const auto x = torch::rand({rows, 2}, numbers) * 2 - 1;
    return TensorMap{{"x", x}, {"y", x.prod(1, true)}};
  };
}

} // namespace

int main(int argc, char** argv) {
  const std::string strategy = argc > 1 ? argv[1] : "mirrored replicas=2";
  Replicator replicator(
      make_strategy(parse_strategy(strategy), troupe::collectives::topology_of_this_process()));
  const auto model = replicator.build<Model>(
      [](ReplicaContext& context) { return std::make_shared<Model>(context); });
  const auto points = replicator.input(read_points);
  double loss = 0;
  for (int step = 0; step < 1500; ++step)
    loss = replicator
               .reduce(*replicator.step(*points,
                                        [&](ReplicaContext& context, const TensorMap& batch) {
                                          return model.of(context).step(batch);
                                        }))
               .at("loss")
               .item<double>();
  if (replicator.is_chief())
    std::cout << replicator.num_replicas() << " replicas, loss " << loss << '\n';
  return loss < 0.03 ? 0 : 1;
}
