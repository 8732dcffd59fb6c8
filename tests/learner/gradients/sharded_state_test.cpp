#include <torch/nn.h>
#include <torch/optim/adam.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include "learner/gradients/sharded_state.hpp"
#include "tests/learner/gradients/wrapped_fixture.hpp"

namespace troupe::learner {
namespace {

using collectives::Communicator;
using collectives::Means;
using collectives::on_ranks;

using Make = std::function<std::unique_ptr<torch::optim::Optimizer>(Parameters)>;

const std::vector<Make>& optimizers() {
  static const std::vector<Make> all{
      [](Parameters p) { return sgd_of(std::move(p)); },
      [](Parameters p) {
        return std::make_unique<torch::optim::Adam>(std::move(p), torch::optim::AdamOptions(0.01));
      },
      [](Parameters p) {
        return std::make_unique<torch::optim::RMSprop>(
            std::move(p), torch::optim::RMSpropOptions(0.01).momentum(0.5));
      }};
  return all;
}

struct Run {
  std::vector<Parameters> parameters; // [rank]
  std::vector<TensorMap> states;
  std::vector<std::int64_t> elements; // elements of optimizer state, [rank]
};

/// Number of elements in the tensors of an optimizer's state.
std::int64_t state_elements(torch::optim::Optimizer& optimizer) {
  std::int64_t count = 0;
  for (auto& [parameter, state] : optimizer.state())
    if (auto* adam = dynamic_cast<torch::optim::AdamParamState*>(state.get()))
      count += adam->exp_avg().numel() + adam->exp_avg_sq().numel();
  return count;
}

Run train(int replicas, const Make& make, bool shard, int first, int last,
          const Parameters& start = {}, const TensorMap& state = {}) {
  Run run;
  run.parameters.resize(static_cast<std::size_t>(replicas));
  run.states.resize(run.parameters.size());
  run.elements.resize(run.parameters.size());
  WrappedOptimizerOptions options;
  options.bucket_bytes = 2048;
  options.max_gradient_norm = 0.5;
  options.shard_optimizer_state = shard;
  const auto errors = on_ranks(Means::threads, replicas, [&](Communicator& communicator) {
    auto network = make_network();
    {
      const at::NoGradGuard guard;
      for (std::size_t i = 0; i < start.size(); ++i)
        network->parameters()[i].copy_(start[i]);
    }
    WrappedOptimizer optimizer(make(network->parameters()), &communicator, options);
    if (!state.empty())
      optimizer.load(state);
    const auto rows = kRows / replicas;
    for (int step = first; step < last; ++step) {
      optimizer.zero_grad();
      const auto [x, y] = batch_of(step);
      const auto begin = communicator.rank() * rows;
      loss_of(network, x.narrow(0, begin, rows), y.narrow(0, begin, rows)).backward();
      optimizer.step();
    }
    const auto rank = static_cast<std::size_t>(communicator.rank());
    run.elements[rank] = state_elements(optimizer.optimizer());
    run.states[rank] = optimizer.state();
    run.parameters[rank] = network->parameters();
  });
  REQUIRE(errors == std::vector<std::string>(static_cast<std::size_t>(replicas)));
  return run;
}

} // namespace

TEST_CASE("Parameters are distributed over the replicas by size, each to one replica") {
  Parameters parameters;
  for (const std::int64_t elements : {100, 1, 50, 40, 10, 1})
    parameters.push_back(torch::zeros({elements}));
  CHECK(owners_of(parameters, 2) == std::vector<int>{0, 0, 1, 1, 1, 1});
  CHECK(owners_of(parameters, 1) == std::vector<int>(6, 0));
  CHECK(owners_of({}, 3).empty());
}

TEST_CASE("Sharded state gives the same updates bit for bit with any optimizer") {
  for (const auto& make : optimizers())
    for (const int replicas : {2, 3}) {
      const auto whole = train(replicas, make, false, 0, 6);
      const auto parts = train(replicas, make, true, 0, 6);
      for (const auto& parameters : parts.parameters)
        CHECK(same(parameters, whole.parameters[0]));
    }
}

TEST_CASE("Each replica keeps about its share of the state") {
  const auto& adam = optimizers()[1];
  const auto whole = train(1, adam, true, 0, 2).elements[0];
  const auto parts = train(2, adam, true, 0, 2).elements;
  CHECK(parts[0] + parts[1] == whole);
  CHECK(std::max(parts[0], parts[1]) < 0.7 * static_cast<double>(whole));
}

TEST_CASE(
    "Saved shards load on another number of replicas, and the run continues as if uninterrupted") {
  for (const auto& make : optimizers()) {
    const auto unbroken = train(1, make, false, 0, 8);
    const auto half = train(3, make, true, 0, 4);
    CHECK(half.states[0].size() == half.states[2].size());
    for (const auto& [replicas, shard] :
         std::vector<std::pair<int, bool>>{{1, false}, {2, true}, {4, true}, {2, false}}) {
      const auto rest = train(replicas, make, shard, 4, 8, half.parameters[0], half.states[1]);
      CHECK(distance(rest.parameters[0], unbroken.parameters[0]) < 1e-9);
    }
  }
}

TEST_CASE("An invalid optimizer state and one of another kind of optimizer are refused") {
  auto parameter = torch::ones({3}).requires_grad_();
  WrappedOptimizer optimizer(sgd_of({parameter}), nullptr);
  CHECK_THROWS_WITH_AS(optimizer.load({}), doctest::Contains("wrapped.steps"), std::runtime_error);
  auto state = optimizer.state();
  for (const auto& steps : {torch::full({1}, -3), torch::zeros({2}, at::kLong), torch::ones({1})}) {
    state["wrapped.steps"] = steps;
    CHECK_THROWS_WITH_AS(optimizer.load(state), doctest::Contains("not a number of updates"),
                         std::runtime_error);
  }
  state = optimizer.state();
  state["residual.0"] = torch::zeros({2, 4});
  CHECK_THROWS_WITH_AS(optimizer.load(state), doctest::Contains("'residual.0' of shape [2, 4]"),
                       std::runtime_error);
  state.erase("residual.0");
  state["optimizer.part0"] = torch::zeros({10}, at::kByte);
  CHECK_THROWS_WITH_AS(optimizer.load(state), doctest::Contains("cannot be loaded"),
                       std::runtime_error);
  WrappedOptimizer adam(optimizers()[1]({parameter}), nullptr);
  parameter.mutable_grad() = torch::ones({3});
  adam.step();
  CHECK_THROWS_WITH_AS(optimizer.load(adam.state()),
                       doctest::Contains("\"optimizer.exp_avg.0\" is unexpected"),
                       std::runtime_error);
}

} // namespace troupe::learner
