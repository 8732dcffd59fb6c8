#pragma once
// A network on every rank, a loss that is a mean over the batch, and the result of one replica on
// the whole batch. Include torch/nn.h, torch/optim/sgd.h and tests/doctest_torch.hpp first.

#include <memory>
#include <string>
#include <vector>

#include "learner/gradients/wrapped_optimizer.hpp"
#include "tests/collectives/ranks.hpp"

namespace troupe::learner {

constexpr std::int64_t kRows = 24; // of the whole batch; divisible by 2, 3 and 4 replicas
constexpr std::int64_t kFeatures = 8;

inline torch::nn::Sequential make_network() {
  torch::nn::Sequential network(
      torch::nn::Linear(kFeatures, 32), torch::nn::Tanh(), torch::nn::Linear(32, 32),
      torch::nn::Tanh(), torch::nn::Linear(32, 16), torch::nn::Tanh(), torch::nn::Linear(16, 1));
  network->to(at::kDouble);
  const at::NoGradGuard guard;
  double next = 0.37;
  for (auto& parameter : network->parameters()) { // threads share LibTorch's generator
    auto flat = parameter.view({-1});
    for (std::int64_t i = 0; i < flat.numel(); ++i) {
      next = next * 3.9 * (1 - next);
      flat[i] = 0.4 * (next - 0.5);
    }
  }
  return network;
}

/// The whole batch of a step: [rows, features], [rows, 1].
inline std::pair<at::Tensor, at::Tensor> batch_of(int step) {
  const auto x = torch::sin(torch::arange(kRows * kFeatures, at::kDouble) * (1.7 + 0.1 * step))
                     .view({kRows, kFeatures});
  return {x, x.sin().sum(1, true)};
}

inline at::Tensor loss_of(torch::nn::Sequential& network, const at::Tensor& x,
                          const at::Tensor& y) {
  return (network->forward(x) - y).pow(2).mean();
}

inline std::unique_ptr<torch::optim::Optimizer> sgd_of(std::vector<at::Tensor> parameters,
                                                       double rate = 0.05, double momentum = 0.9) {
  return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                             torch::optim::SGDOptions(rate).momentum(momentum));
}

using Parameters = std::vector<at::Tensor>;

/// One replica, the whole batch, plain SGD.
inline Parameters alone(int steps) {
  auto network = make_network();
  const auto optimizer = sgd_of(network->parameters());
  for (int step = 0; step < steps; ++step) {
    optimizer->zero_grad();
    const auto [x, y] = batch_of(step);
    loss_of(network, x, y).backward();
    optimizer->step();
  }
  return network->parameters();
}

/// Parameters [rank][parameter] after `steps` steps, each replica on its rows. Calls `look` at the
/// end of each step.
inline std::vector<Parameters>
together(int replicas, int steps, const WrappedOptimizerOptions& options,
         const std::function<void(int rank, int step, WrappedOptimizer&)>& look = {},
         collectives::Means means = collectives::Means::threads) {
  std::vector<Parameters> result(static_cast<std::size_t>(replicas));
  const auto errors =
      collectives::on_ranks(means, replicas, [&](collectives::Communicator& communicator) {
        auto network = make_network();
        WrappedOptimizer optimizer(sgd_of(network->parameters()), &communicator, options);
        const auto rows = kRows / replicas;
        for (int step = 0; step < steps; ++step) {
          const auto [x, y] = batch_of(step);
          const auto mine = rows / options.accumulate;
          for (int micro = 0; micro < options.accumulate; ++micro) {
            const auto begin = communicator.rank() * rows + micro * mine;
            optimizer.zero_grad();
            loss_of(network, x.narrow(0, begin, mine), y.narrow(0, begin, mine)).backward();
            CHECK(optimizer.step() == (micro + 1 == options.accumulate));
          }
          if (look)
            look(communicator.rank(), step, optimizer);
        }
        result[static_cast<std::size_t>(communicator.rank())] = network->parameters();
      });
  REQUIRE(errors == std::vector<std::string>(static_cast<std::size_t>(replicas)));
  return result;
}

/// The largest |a - b|.
inline double distance(const Parameters& a, const Parameters& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, (a[i] - b[i]).abs().max().item<double>());
  return worst;
}

inline bool same(const Parameters& a, const Parameters& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!torch::equal(a[i], b[i]))
      return false;
  return true;
}

} // namespace troupe::learner
