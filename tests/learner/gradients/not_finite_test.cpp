// A gradient with NaN or infinity on one replica: either every replica reports it before any
// parameter changes, or the step is skipped and counted.
#include <torch/nn.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "learner/gradients/local_sgd_rule.hpp"
#include "learner/gradients/not_finite.hpp"
#include "learner/parameter_server/parameter_server_rule.hpp"
#include "learner/replicas/replica_context.hpp"
#include "tests/learner/gradients/wrapped_fixture.hpp"
#include "tests/learner/replicas/line_fit.hpp"

namespace troupe::learner {
namespace {

using collectives::Communicator;
using collectives::Means;
using collectives::on_ranks;
using namespace std::chrono_literals;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// The steps of wrapped_fixture.hpp on three replicas. In each step of `bad`, replica 2's loss is
/// NaN.
std::vector<Parameters> train(const std::vector<int>& steps, const std::vector<int>& bad,
                              const WrappedOptimizerOptions& options) {
  std::vector<Parameters> found(3);
  const auto errors = on_ranks(Means::threads, 3, [&](Communicator& communicator) {
    auto network = make_network();
    WrappedOptimizer optimizer(sgd_of(network->parameters()), &communicator, options);
    for (const int step : steps) {
      const auto [x, y] = batch_of(step);
      const bool spoilt =
          communicator.rank() == 2 && std::find(bad.begin(), bad.end(), step) != bad.end();
      optimizer.zero_grad();
      const auto begin = communicator.rank() * kRows / 3;
      auto loss = loss_of(network, x.narrow(0, begin, kRows / 3), y.narrow(0, begin, kRows / 3));
      (spoilt ? loss * kNan : loss).backward();
      const bool left_out = std::find(bad.begin(), bad.end(), step) != bad.end();
      CHECK(optimizer.step() != left_out);
    }
    CHECK(optimizer.skipped() == static_cast<std::int64_t>(bad.size()));
    CHECK(optimizer.steps() == static_cast<std::int64_t>(steps.size() - bad.size()));
    found[static_cast<std::size_t>(communicator.rank())] = network->parameters();
  });
  CHECK(errors == std::vector<std::string>(3));
  return found;
}

} // namespace

TEST_CASE("A step that is not finite on one replica is skipped on all without a trace") {
  for (const bool overlap : {true, false})
    for (const bool shard : {false, true}) {
      WrappedOptimizerOptions options;
      options.bucket_bytes = 2048;
      options.overlap = overlap;
      options.shard_optimizer_state = shard;
      options.skip_not_finite = 2;
      const auto with = train({0, 1, 2, 3, 4, 5, 6}, {2, 3, 5}, options);
      const auto without = train({0, 1, 4, 6}, {}, options);
      for (const auto& parameters : with)
        CHECK(same(parameters, without[0]));
    }
}

TEST_CASE(
    "With compression, a skipped step leaves the parameters finite and equal on all replicas") {
  for (const auto kind : {CompressionKind::fp16, CompressionKind::bf16, CompressionKind::top_k,
                          CompressionKind::power_sgd}) {
    WrappedOptimizerOptions options;
    options.bucket_bytes = 2048;
    options.skip_not_finite = 1;
    options.compression.kind = kind;
    const auto found = train({0, 1, 2, 3, 4}, {2}, options);
    CHECK(same(found[0], found[1]));
    CHECK(same(found[0], found[2]));
    for (const auto& parameter : found[0])
      CHECK(parameter.isfinite().all().item<bool>());
  }
}

TEST_CASE(
    "The number of consecutive skipped steps is limited, and a successful step resets the count") {
  auto network = make_network();
  const std::vector<at::Tensor> before = [&] {
    std::vector<at::Tensor> copies;
    for (const auto& parameter : network->parameters())
      copies.push_back(parameter.detach().clone());
    return copies;
  }();
  auto sgd = sgd_of(network->parameters());
  WrappedOptimizerOptions options;
  options.skip_not_finite = 2;
  options.names = parameter_names(*network, *sgd);
  WrappedOptimizer optimizer(std::move(sgd), nullptr, options);
  const auto [x, y] = batch_of(0);
  const auto step = [&](double factor) {
    optimizer.zero_grad();
    (loss_of(network, x, y) * factor).backward();
    return optimizer.step();
  };
  CHECK_FALSE(step(kNan));
  CHECK_FALSE(step(INFINITY));
  CHECK(same(network->parameters(), before));
  CHECK(step(1));
  const auto after = network->parameters()[0].detach().clone();
  CHECK_FALSE(step(kNan));
  CHECK_FALSE(step(kNan));
  CHECK_THROWS_WITH(step(kNan),
                    doctest::Contains("update 2: the gradient of parameter \"0.weight\", shape "
                                      "[32, 8], is not finite (nor are those of 7 others), after "
                                      "2 that were left out"));
  CHECK(optimizer.skipped() == 4);
  CHECK(torch::equal(network->parameters()[0], after));
}

TEST_CASE("The error on every replica names the parameter, the update and the replica") {
  const auto errors = on_ranks(Means::threads, 3, [&](Communicator& communicator) {
    auto network = make_network();
    auto sgd = sgd_of(network->parameters());
    WrappedOptimizerOptions options;
    options.names = parameter_names(*network, *sgd);
    WrappedOptimizer optimizer(std::move(sgd), &communicator, options);
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      const auto [x, y] = batch_of(step);
      loss_of(network, x, y).backward();
      if (step == 2 && communicator.rank() == 1)
        network->named_parameters()["4.bias"].mutable_grad() =
            torch::full({16}, INFINITY, at::kDouble);
      optimizer.step();
    }
  });
  for (const auto& error : errors)
    CHECK(has(error, "update 3: the gradient of parameter \"4.bias\", shape [16], is not finite "
                     "on replica 1 of 3; the parameters were not changed"));
}

TEST_CASE("Invalid options for skipped steps are refused") {
  auto network = make_network();
  const auto make = [&](const WrappedOptimizerOptions& options) {
    const WrappedOptimizer optimizer(sgd_of(network->parameters()), nullptr, options);
  };
  CHECK_THROWS_WITH(make({.skip_not_finite = -1}), doctest::Contains("skip_not_finite -1"));
  CHECK_THROWS_WITH(make({.names = {"one"}}), doctest::Contains("names: 1 for 8 parameters"));
}

TEST_CASE("A worker of central storage that skips a step does not make others wait") {
  const Problem problem;
  LocalParameterServer server(central_storage(2), 10s);
  std::vector<at::Tensor> found(2);
  const auto rows = problem.x.size(0) / 2;
  const auto errors = on_threads(2, [&](int id) {
    LineFit fit(id);
    ReplicaContext context(
        ReplicaAssignment{.replica_id = id,
                          .num_replicas = 2,
                          .update_rule = local_parameter_server_rules(server, id)});
    const auto optimizer =
        context.wrap_optimizer(std::make_unique<torch::optim::Adam>(fit.model->parameters(), 0.05),
                               {.skip_not_finite = 1});
    for (int step = 0; step < 5; ++step) {
      optimizer->zero_grad();
      auto loss =
          fit.loss(problem.x.narrow(0, id * rows, rows), problem.y.narrow(0, id * rows, rows));
      (id == 1 && step == 2 ? loss * kNan : loss).backward();
      CHECK(optimizer->step() != (id == 1 && step == 2));
    }
    found[static_cast<std::size_t>(id)] = fit.flat();
  });
  CHECK(errors == std::vector<std::string>(2));
  LineFit fit(0); // one replica, whose third batch is worker 0's part alone
  ReplicaContext context(nullptr);
  const auto optimizer =
      context.wrap_optimizer(std::make_unique<torch::optim::Adam>(fit.model->parameters(), 0.05));
  for (int step = 0; step < 5; ++step)
    fit.step(*optimizer, problem, 0, step == 2 ? rows : 2 * rows);
  CHECK(found[0].allclose(fit.flat(), 1e-9, 1e-12));
  CHECK(torch::equal(found[0], found[1]));
}

TEST_CASE("A rule's mean covers the replicas whose gradients are finite") {
  using Rules = std::function<UpdateRuleFactory(collectives::Communicator*)>;
  LocalParameterServer server({.workers = 1}, 10s);
  const std::pair<const char*, Rules> rules[] = {
      {"a sync group",
       [&](collectives::Communicator* communicator) {
         return local_parameter_server_rules(server, 0, {.communicator = communicator});
       }},
      {"synchronous steps of local SGD", [](collectives::Communicator* communicator) {
         return local_sgd_rules(communicator, {.synchronous_steps = 3});
       }}};
  for (const auto& [name, rules_of] : rules) {
    CAPTURE(std::string(name));
    const auto make_rules = rules_of;
    auto communicators = collectives::make_thread_communicators(2, {.timeout = 10s});
    std::vector<at::Tensor> found(2);
    const auto errors = on_threads(2, [&](int id) {
      auto* communicator = communicators[static_cast<std::size_t>(id)].get();
      auto parameter = torch::zeros({2}, at::kDouble).requires_grad_();
      ReplicaContext context(ReplicaAssignment{.replica_id = id,
                                               .num_replicas = 2,
                                               .communicator = communicator,
                                               .update_rule = make_rules(communicator)});
      const auto optimizer = context.wrap_optimizer(
          std::make_unique<torch::optim::SGD>(std::vector<at::Tensor>{parameter}, 1.0),
          {.skip_not_finite = 2});
      for (int step = 0; step < 3; ++step) {
        optimizer->zero_grad();
        const bool spoilt = step == 2 || (step == 1 && id == 1); // first one of them, then both
        (parameter.sum() * (spoilt ? kNan : 2.0 * (id + 1))).backward();
        optimizer->step();
      }
      found[static_cast<std::size_t>(id)] = parameter.detach();
    });
    CHECK(errors == std::vector<std::string>(2));
    for (const auto& parameter : found) // the mean of 2 and 4, then 2 alone, then nothing
      CHECK(torch::equal(parameter, torch::full({2}, -5.0, at::kDouble)));
  }
}

} // namespace troupe::learner
