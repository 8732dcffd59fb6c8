#pragma once
// LibTorch's Reducer over one of our backends, compared with one large batch.
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include "tests/collectives/ranks.hpp"

namespace troupe::collectives {

constexpr int kBatch = 16; // per rank
constexpr int kSteps = 4;

inline torch::nn::Sequential make_network() {
  torch::manual_seed(1);
  torch::nn::Sequential network(torch::nn::Linear(8, 64), torch::nn::Tanh(),
                                torch::nn::Linear(64, 64), torch::nn::Tanh(),
                                torch::nn::Linear(64, 2));
  network->to(at::kDouble);
  return network;
}

inline std::shared_ptr<c10d::Reducer> make_reducer(std::vector<at::Tensor> parameters,
                                                   c10::intrusive_ptr<c10d::ProcessGroup> group) {
  constexpr std::int64_t kBucketBytes = 8192;
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(parameters, {kBucketBytes});
  std::reverse(buckets.begin(), buckets.end());
  return std::make_shared<c10d::Reducer>(
      parameters, buckets, std::move(group), std::vector<bool>(parameters.size(), false),
      kBucketBytes, false, true, std::unordered_map<std::size_t, std::string>{}, kBucketBytes,
      false, false, std::vector<std::int64_t>{});
}

inline at::Tensor loss_of(const at::Tensor& output, const at::Tensor& y) {
  return (output - y).pow(2).mean();
}

/// Returns the largest difference between a rank's parameters after kSteps steps and those trained
/// on one large batch.
inline double train_by_reducer(Means means, int ranks = 2) {
  torch::manual_seed(2);
  std::vector<at::Tensor> x, y;
  for (int step = 0; step < kSteps; ++step) {
    x.push_back(torch::randn({ranks * kBatch, 8}, at::kDouble));
    y.push_back(torch::randn({ranks * kBatch, 2}, at::kDouble));
  }
  std::vector<torch::nn::Sequential> networks;
  for (int rank = 0; rank <= ranks; ++rank)
    networks.push_back(make_network());
  const auto errors = on_ranks(means, ranks, [&](Communicator& communicator) {
    at::set_num_threads(1);
    auto& network = networks[static_cast<std::size_t>(communicator.rank())];
    auto parameters = network->parameters();
    c10d::verify_params_across_processes(communicator.process_group(), parameters, std::nullopt);
    auto reducer = make_reducer(parameters, communicator.process_group());
    torch::optim::SGD optimizer(parameters, 0.1);
    for (std::size_t step = 0; step < kSteps; ++step) {
      reducer->prepare_for_forward();
      const auto begin = communicator.rank() * kBatch;
      auto output = network->forward(x[step].narrow(0, begin, kBatch));
      reducer->prepare_for_backward({output});
      for (auto& parameter : parameters)
        parameter.mutable_grad().reset();
      loss_of(output, y[step].narrow(0, begin, kBatch)).backward();
      optimizer.step();
    }
  });
  REQUIRE(errors == std::vector<std::string>(static_cast<std::size_t>(ranks)));
  auto& whole = networks.back();
  torch::optim::SGD optimizer(whole->parameters(), 0.1);
  for (std::size_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    loss_of(whole->forward(x[step]), y[step]).backward();
    optimizer.step();
  }
  double worst = 0;
  for (const int here : ranks_here(means, ranks))
    for (std::size_t i = 0; i < whole->parameters().size(); ++i)
      worst = std::max(worst, (networks[static_cast<std::size_t>(here)]->parameters()[i]
                               - whole->parameters()[i])
                                  .abs()
                                  .max()
                                  .item<double>());
  return worst;
}

} // namespace troupe::collectives
