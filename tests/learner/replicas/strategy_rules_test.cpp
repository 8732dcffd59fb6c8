#include <barrier>
#include <future>

#include "tests/learner/replicas/line_fit.hpp"

#include "tests/doctest_torch.hpp"

#include "learner/gradients/local_sgd_rule.hpp"
#include "learner/nn/kernels/fused_adam.hpp"
#include "learner/parameter_server/parameter_server_rule.hpp"

namespace troupe::learner {
namespace {

using namespace std::chrono_literals;
using Clean = std::vector<std::string>;

std::unique_ptr<torch::optim::Optimizer> adam_of(const LineFit& fit) {
  // Two param groups; the bias has its own learning rate.
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<at::Tensor>{fit.model->weight},
                      std::make_unique<torch::optim::AdamOptions>(0.05));
  groups.emplace_back(std::vector<at::Tensor>{fit.model->bias},
                      std::make_unique<torch::optim::AdamOptions>(0.02));
  return std::make_unique<torch::optim::Adam>(groups, torch::optim::AdamOptions(0.05));
}

ReplicaAssignment assignment(int replica, int replicas, UpdateRuleFactory rules,
                             collectives::Communicator* communicator = nullptr) {
  return {.replica_id = replica,
          .num_replicas = replicas,
          .communicator = communicator,
          .update_rule = std::move(rules)};
}

/// Trains one replica on the whole batch.
at::Tensor alone(const Problem& problem, int steps) {
  LineFit fit(0);
  ReplicaContext context(nullptr);
  const auto optimizer = context.wrap_optimizer(adam_of(fit));
  for (int i = 0; i < steps; ++i)
    fit.step(*optimizer, problem, 0, problem.x.size(0));
  return fit.flat();
}

/// Trains `count` groups of `size` replicas through the server, each on its part of the batch.
std::vector<at::Tensor> train(LocalParameterServer& server, const Problem& problem, int count,
                              int size, int steps) {
  const int replicas = count * size;
  const auto rows = problem.x.size(0) / replicas;
  std::vector<std::vector<std::unique_ptr<collectives::Communicator>>> groups;
  for (int i = 0; i < count; ++i)
    groups.push_back(collectives::make_thread_communicators(size, {.timeout = 10s}));
  std::vector<at::Tensor> results(static_cast<std::size_t>(replicas));
  const auto errors = on_threads(replicas, [&](int id) {
    auto* communicator =
        groups[static_cast<std::size_t>(id / size)][static_cast<std::size_t>(id % size)].get();
    LineFit fit(id);
    ReplicaContext context(
        assignment(id, replicas,
                   local_parameter_server_rules(server, id / size, {.communicator = communicator}),
                   communicator));
    const auto optimizer = context.wrap_optimizer(adam_of(fit));
    for (int i = 0; i < steps; ++i)
      fit.step(*optimizer, problem, id * rows, rows);
    results[static_cast<std::size_t>(id)] = fit.flat();
  });
  CHECK(errors == Clean(static_cast<std::size_t>(replicas)));
  return results;
}

} // namespace

TEST_CASE("N replicas with central storage equal one on the whole batch") {
  const Problem problem;
  const auto expected = alone(problem, 60);
  for (const int replicas : {1, 2, 4}) {
    LocalParameterServer server(central_storage(replicas), 10s);
    for (const auto& result : train(server, problem, replicas, 1, 60))
      CHECK(result.allclose(expected, 1e-9, 1e-12));
    CHECK(server.version() == 60);
    CHECK(server.counters().applied == 60 * replicas);
  }
}

TEST_CASE("Asynchronous replicas reach the solution, and every gradient is applied") {
  const Problem problem;
  LocalParameterServer server({.workers = 3, .staleness_rate = StalenessRate::inverse}, 10s);
  const auto results = train(server, problem, 3, 1, 1500);
  CHECK(server.counters().applied == 3 * 1500);
  CHECK(final_loss(problem, results[0]) < final_loss(problem, LineFit(0).flat()) / 10);
}

TEST_CASE("max_lead 1 bounds the staleness of gradients") {
  const Problem problem;
  LocalParameterServer server({.workers = 3, .max_lead = 1}, 10s);
  train(server, problem, 3, 1, 200);
  // Since the pusher's pull, the others make at most 2 steps more than it does, and it was at most
  // 2 behind.
  CHECK(server.counters().staleness_most <= 2 * 4);
  CHECK(server.counters().applied == 600);
}

TEST_CASE(
    "A sync group pushes the mean of its replicas and gives all of them the same parameters") {
  const Problem problem;
  const auto expected = alone(problem, 40);
  LocalParameterServer one({.workers = 1}, 10s);
  for (const auto& result : train(one, problem, 1, 4, 40)) // a single group: synchronous
    CHECK(result.allclose(expected, 1e-9, 1e-12));
  LocalParameterServer two({.workers = 2}, 10s);
  const auto results = train(two, problem, 2, 2, 1500);
  CHECK(two.counters().applied == 3000);
  CHECK(results[0].equal(results[1]));
  CHECK(results[2].equal(results[3]));
  CHECK(final_loss(problem, results[0]) < final_loss(problem, LineFit(0).flat()) / 10);
}

TEST_CASE("With backup workers, the slow replica does not hold back the others") {
  const Problem problem;
  LocalParameterServer server(with_backup_workers(3, 1), 10s);
  std::promise<void> others; // have finished; the slow one is in its first step
  const auto ready = others.get_future().share();
  std::barrier begun(3);
  Metrics late;
  const auto errors = on_threads(3, [&](int id) {
    LineFit fit(id);
    auto made = local_parameter_server_rules(server, id)(0);
    UpdateRule* rule = made.get();
    ReplicaContext context(assignment(id, 3, [&](int) { return std::move(made); }));
    const auto optimizer = context.wrap_optimizer(adam_of(fit));
    begun.arrive_and_wait();
    if (id == 2) {
      fit.loss(problem.x, problem.y).backward();
      if (ready.wait_for(20s) != std::future_status::ready)
        throw std::runtime_error("the others wait for the slow one");
      optimizer->step();
      late = rule->metrics();
      return;
    }
    for (int i = 0; i < 50; ++i)
      fit.step(*optimizer, problem, 0, 8);
    if (id == 0)
      others.set_value();
  });
  CHECK(errors == Clean(3));
  CHECK(server.version() == 50);
  CHECK(server.counters().dropped == 1);
  CHECK(late.at("dropped_gradients") == 1);
  CHECK(late.at("staleness") == 50);
}

TEST_CASE(
    "A replica learns how many updates its parameters took, including those of other replicas") {
  const Problem problem;
  LocalParameterServer server({.synchrony = Synchrony::asynchronous, .workers = 2}, 10s);
  std::vector<std::int64_t> seen;
  const auto errors = on_threads(1, [&](int) {
    std::vector<std::unique_ptr<LineFit>> fits;
    std::vector<std::unique_ptr<ReplicaContext>> contexts;
    std::vector<std::unique_ptr<WrappedOptimizer>> optimizers;
    for (int id = 0; id < 2; ++id) {
      fits.push_back(std::make_unique<LineFit>(id));
      contexts.push_back(std::make_unique<ReplicaContext>(
          assignment(id, 2, local_parameter_server_rules(server, id))));
      optimizers.push_back(contexts.back()->wrap_optimizer(adam_of(*fits.back())));
    }
    for (const std::size_t id : {0u, 1u, 1u, 1u, 0u, 0u, 1u}) {
      fits[id]->step(*optimizers[id], problem, 0, 32);
      seen.push_back(optimizers[id]->updates_applied());
    }
  });
  CHECK(errors == Clean(1));
  CHECK(server.version() == 7);
  CHECK(seen == std::vector<std::int64_t>{1, 1, 1, 1, 4, 1, 3});
}

TEST_CASE(
    "A replica that leaves is not waited for, and one that is missing is named at the deadline") {
  const Problem problem;
  LocalParameterServer server(central_storage(2), 200ms);
  auto errors = on_threads(2, [&](int id) {
    LineFit fit(id);
    ReplicaContext context(assignment(id, 2, local_parameter_server_rules(server, id)));
    const auto optimizer = context.wrap_optimizer(adam_of(fit));
    for (int i = 0; i < (id == 0 ? 20 : 5); ++i) // and then destroys its rule
      fit.step(*optimizer, problem, 0, 32);
  });
  CHECK(errors == Clean(2));
  CHECK(server.version() == 20);
  LocalParameterServer other(central_storage(2), 20ms);
  errors = on_threads(1, [&](int id) {
    LineFit fit(id);
    ReplicaContext context(assignment(id, 2, local_parameter_server_rules(other, id)));
    const auto optimizer = context.wrap_optimizer(adam_of(fit));
    fit.step(*optimizer, problem, 0, 32);
  });
  CHECK(errors[0].find("those of workers 1 are not") != std::string::npos);
}

TEST_CASE(
    "Two optimizers of a replica have one server each, and FusedAdam works on a flat parameter") {
  LocalParameterServer server(central_storage(2), 10s);
  std::vector<at::Tensor> results(2);
  const auto errors = on_threads(2, [&](int id) {
    auto flat = torch::full({6}, 1.0 + id, at::kFloat);
    auto other = torch::full({3}, 1.0 + id, at::kFloat);
    ReplicaContext context(assignment(id, 2, local_parameter_server_rules(server, id)));
    const auto first = context.wrap_optimizer(std::make_unique<FusedAdam>(flat, 0.1));
    const auto second = context.wrap_optimizer(std::make_unique<torch::optim::SGD>(
        std::vector<at::Tensor>{other}, torch::optim::SGDOptions(0.5)));
    for (int i = 0; i < 10; ++i) {
      flat.mutable_grad() = flat * 2;
      first->step();
      other.mutable_grad() = other * 0 + (id == 0 ? 1 : 3);
      second->step();
    }
    results[static_cast<std::size_t>(id)] = torch::cat({flat, other});
  });
  CHECK(errors == Clean(2));
  CHECK(results[0].equal(results[1]));
  CHECK(results[0][6].item<double>() == doctest::Approx(1 - 0.5 * 2 * 10));
  auto flat = torch::full({6}, 1.0, at::kFloat);
  FusedAdam adam(flat, 0.1);
  for (int i = 0; i < 10; ++i) {
    flat.mutable_grad() = flat * 2;
    adam.step();
  }
  CHECK(results[0].narrow(0, 0, 6).allclose(flat));
}

TEST_CASE("Local SGD agrees at every period and drifts in between, and period 1 is synchronous") {
  const Problem problem;
  const auto run = [&](const LocalSgdOptions& options, int steps) {
    auto communicators = collectives::make_thread_communicators(2, {.timeout = 10s});
    std::vector<std::vector<at::Tensor>> after(2);
    const auto errors = on_threads(2, [&](int id) {
      auto* communicator = communicators[static_cast<std::size_t>(id)].get();
      LineFit fit(id);
      ReplicaContext context(
          assignment(id, 2, local_sgd_rules(communicator, options), communicator));
      const auto optimizer = context.wrap_optimizer(std::make_unique<torch::optim::SGD>(
          fit.model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9)));
      for (int i = 0; i < steps; ++i) {
        fit.step(*optimizer, problem, id * 16, 16);
        after[static_cast<std::size_t>(id)].push_back(fit.flat());
      }
    });
    CHECK(errors == Clean(2));
    return after;
  };
  const auto apart = run({.period = 4, .synchronous_steps = 3}, 15);
  for (std::size_t step = 0; step < 15; ++step)
    CHECK(apart[0][step].equal(apart[1][step]) == (step < 3 || (step - 2) % 4 == 0));

  // Momentum is linear, so averaging parameters and moments in every step equals averaging
  // gradients.
  const auto each = run({.period = 1, .average_moments = true}, 20);
  const auto synchronous = run({.period = 1, .synchronous_steps = 20}, 20);
  CHECK(each[0].back().allclose(synchronous[0].back(), 1e-9, 1e-12));
  CHECK(final_loss(problem, run({.period = 8}, 400)[0].back()) < 1e-4);
  CHECK_THROWS_AS(make_local_sgd_rule(nullptr, {.period = 0}), std::invalid_argument);
}

TEST_CASE("Local SGD resumes between two averages and does not repeat its synchronous steps") {
  const Problem problem;
  // Trains two replicas from what they saved, unless that is empty, and returns what they save. The
  // rule's state is part of the optimizer's or (`apart`) separate.
  const auto run = [&](int steps, const std::vector<TensorMap>& saved, bool apart) {
    auto communicators = collectives::make_thread_communicators(2, {.timeout = 10s});
    std::vector<TensorMap> after(2);
    const auto errors = on_threads(2, [&](int id) {
      const auto index = static_cast<std::size_t>(id);
      auto* communicator = communicators[index].get();
      LineFit fit(id);
      ReplicaContext context(
          assignment(id, 2, local_sgd_rules(communicator, {.period = 4, .synchronous_steps = 3}),
                     communicator));
      const auto optimizer = context.wrap_optimizer(std::make_unique<torch::optim::SGD>(
          fit.model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9)));
      if (!saved.empty()) {
        const torch::NoGradGuard guard;
        auto state = saved[index];
        fit.model->weight.copy_(state.at("weight"));
        fit.model->bias.copy_(state.at("bias"));
        context.load_rule_state(state, 0);
        optimizer->load(state);
      }
      for (int i = 0; i < steps; ++i)
        fit.step(*optimizer, problem, id * 16, 16);
      auto& state = after[index] = optimizer->state();
      if (apart) {
        state.erase("local_sgd.counters");
        state.merge(context.rule_state());
      }
      state["weight"] = fit.model->weight.detach().clone();
      state["bias"] = fit.model->bias.detach().clone();
    });
    CHECK(errors == Clean(2));
    return after;
  };
  for (const bool apart : {false, true}) {
    const auto whole = run(12, {}, apart);
    for (const int half : {2, 5, 9}) {
      CAPTURE(half);
      const auto resumed = run(12 - half, run(half, {}, apart), apart);
      for (std::size_t replica = 0; replica < 2; ++replica)
        for (const char* name : {"weight", "bias"})
          CHECK(resumed[replica].at(name).equal(whole[replica].at(name)));
    }
    CHECK_FALSE(whole[0].at("weight").equal(whole[1].at("weight")));
  }
  CHECK_THROWS_WITH_AS(
      make_local_sgd_rule(nullptr)->load({{"local_sgd.counters", torch::ones({1}, at::kLong)}}, 0),
      doctest::Contains("it must be two numbers"), std::runtime_error);
}

TEST_CASE(
    "Other parameters, another optimizer or a gradient that is not finite end the replica with "
    "an error that names them") {
  LocalParameterServer server({.workers = 3}, 10s);
  const auto errors = on_threads(3, [&](int id) {
    auto parameter = torch::zeros({id == 1 ? 3 : 2});
    ReplicaContext context(assignment(id, 3, local_parameter_server_rules(server, id)));
    std::unique_ptr<torch::optim::Optimizer> optimizer =
        std::make_unique<torch::optim::SGD>(std::vector<at::Tensor>{parameter}, 0.1);
    if (id == 2)
      optimizer = std::make_unique<torch::optim::Adam>(std::vector<at::Tensor>{parameter});
    const auto wrapped = context.wrap_optimizer(std::move(optimizer));
    parameter.mutable_grad() = torch::full({2}, NAN);
    wrapped->step();
  });
  CHECK(errors[0].find("update 1: the gradient of parameter 0") != std::string::npos);
  CHECK(errors[0].find("shape [2], is not finite") != std::string::npos);
  CHECK(server.version() == 0);
  CHECK(errors[1].find("other parameters (3 elements") != std::string::npos);
  CHECK(errors[2].find("optimizer Adam, the parameter server SGD") != std::string::npos);
}

TEST_CASE("A custom optimizer works with a describer and a maker") {
  class Sign : public torch::optim::Optimizer { // steps by the sign of the gradient
  public:
    explicit Sign(std::vector<at::Tensor> parameters)
        : Optimizer(std::move(parameters), std::make_unique<torch::optim::SGDOptions>(0.5)) {}
    at::Tensor step(LossClosure) override {
      for (auto& group : param_groups())
        for (auto& parameter : group.params())
          parameter.sub_(parameter.grad().sign() * group.options().get_lr());
      return {};
    }
  };
  LocalParameterServer server({.workers = 1}, 10s,
                              [](const OptimizerRecipe& recipe, const ParameterGroups& groups) {
                                CHECK(recipe.name == "Sign");
                                return std::make_unique<Sign>(groups.at(0));
                              });
  const OptimizerDescriber describer = [](const torch::optim::Optimizer&) {
    return OptimizerRecipe{.name = "Sign", .groups = {{}}};
  };
  auto parameter = torch::zeros({2});
  ReplicaContext context(
      assignment(0, 1, local_parameter_server_rules(server, 0, {.describe = describer})));
  const auto optimizer = context.wrap_optimizer(std::make_unique<Sign>(std::vector{parameter}));
  parameter.mutable_grad() = torch::tensor({7.F, -0.1F});
  optimizer->step();
  CHECK(parameter.equal(torch::tensor({-0.5F, 0.5F})));
}

TEST_CASE("Local SGD averages moments that only some replicas have, the others' as zero") {
  auto communicators = collectives::make_thread_communicators(2, {.timeout = 10s});
  std::vector<double> found(2);
  const auto errors = on_threads(2, [&](int id) {
    auto* communicator = communicators[static_cast<std::size_t>(id)].get();
    auto shared = torch::zeros({2}, at::kDouble), partial = torch::zeros({1}, at::kDouble);
    ReplicaContext context(
        assignment(id, 2, local_sgd_rules(communicator, {.period = 1, .average_moments = true}),
                   communicator));
    const auto optimizer = context.wrap_optimizer(std::make_unique<torch::optim::SGD>(
        std::vector<at::Tensor>{shared, partial}, torch::optim::SGDOptions(1).momentum(0.9)));
    for (int step = 0; step < 2; ++step) {
      shared.mutable_grad() = torch::ones({2}, at::kDouble);
      if (id == 0)
        partial.mutable_grad() = torch::ones({1}, at::kDouble);
      optimizer->step();
    }
    found[static_cast<std::size_t>(id)] = partial.item<double>();
  });
  CHECK(errors == Clean(2));
  // Means over the two replicas, first of -1 and 0 with momentum 1 and 0, then of -0.5 - 1.45 and
  // -0.5.
  for (const double partial : found)
    CHECK(partial == doctest::Approx(-1.225));
}

} // namespace troupe::learner
