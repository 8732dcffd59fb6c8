#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "learner/gradients/update_rule.hpp"
#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/replicas/replica.hpp"
#include "tests/text.hpp"

namespace troupe::learner {

/// A small regression problem: x [samples, 4], and y from a fixed network.
struct Problem {
  explicit Problem(std::int64_t samples = 32, at::ScalarType type = at::kDouble) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(7);
    x = torch::randn({samples, 4}, generator, type);
    const auto weight = torch::randn({4, 2}, generator, type);
    y = x.matmul(weight) + 0.5;
  }
  at::Tensor x;
  at::Tensor y;
};

/// A linear model. Its initial parameters differ between the replicas, so that a test sees whether
/// they are made equal.
struct LineFit {
  explicit LineFit(int replica, at::ScalarType type = at::kDouble) : model(4, 2) {
    model->to(type);
    const torch::NoGradGuard guard;
    model->weight.fill_(0.1 * (replica + 1));
    model->bias.fill_(-0.1 * (replica + 1));
  }
  at::Tensor loss(const at::Tensor& x, const at::Tensor& y) {
    return (model->forward(x) - y).pow(2).mean();
  }
  /// Makes a step on rows [first, first + count).
  void step(WrappedOptimizer& optimizer, const Problem& problem, std::int64_t first,
            std::int64_t count) {
    optimizer.zero_grad();
    loss(problem.x.narrow(0, first, count), problem.y.narrow(0, first, count)).backward();
    optimizer.step();
  }
  at::Tensor flat() const {
    return torch::cat({model->weight.detach().reshape({-1}), model->bias.detach()});
  }
  torch::nn::Linear model;
};

/// The loss on the whole problem with the parameters that flat() returned.
inline double final_loss(const Problem& problem, const at::Tensor& flat) {
  LineFit fit(0);
  const torch::NoGradGuard guard;
  fit.model->weight.copy_(flat.narrow(0, 0, 8).view({2, 4}));
  fit.model->bias.copy_(flat.narrow(0, 8, 2));
  return fit.loss(problem.x, problem.y).item<double>();
}

/// Calls `body(replica)` on one thread per replica. Returns each replica's error, or "".
inline std::vector<std::string> on_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(count));
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back(
        [&, i] { errors[static_cast<std::size_t>(i)] = error_of([&] { body(i); }); });
  threads.clear();
  return errors;
}

} // namespace troupe::learner
