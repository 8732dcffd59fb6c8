#include <torch/optim/sgd.h>
#include <torch/types.h>

#include "tests/doctest_torch.hpp"

#include <latch>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "learner/elastic_program.hpp"
#include "learner/local_sgd_rule.hpp"
#include "learner/wrapped_optimizer.hpp"
#include "tests/collectives/ranks.hpp"

namespace troupe::learner {
namespace {

using collectives::ElasticGroup;
using std::chrono::milliseconds;

constexpr std::int64_t kGlobalBatch = 12;
constexpr std::int64_t kSteps = 40;

struct Killed {};

/// A regression with momentum, whose global batches hang on the step alone. Dies where told.
class Regression : public Replica {
public:
  explicit Regression(std::function<void(std::int64_t step)> before_step = {})
      : before_step_(std::move(before_step)) {}

  void build(ReplicaContext& context) override {
    draws_ = torch::full({1}, static_cast<std::int64_t>(context.seed()));
    weight_ = torch::full({4, 1}, 0.1 * (1 + context.replica_id()), at::kDouble).requires_grad_();
    optimizer_ = context.wrap_optimizer(std::make_unique<torch::optim::SGD>(
        std::vector<at::Tensor>{weight_}, torch::optim::SGDOptions(0.05).momentum(0.9)));
  }
  Input input_fn(const InputContext& context) override {
    return [=, step = context.first_step]() mutable {
      const auto x =
          torch::sin(torch::arange(kGlobalBatch * 4, at::kDouble) * 0.7 + static_cast<double>(step))
              .view({kGlobalBatch, 4});
      const TensorMap all{{"x", x}, {"step", torch::full({kGlobalBatch}, step++)}};
      return part_of_batch(all, context.input_pipeline_id, context.num_input_pipelines);
    };
  }
  Metrics step_fn(ReplicaContext&, const TensorMap& batch) override {
    if (before_step_)
      before_step_(batch.at("step")[0].item<std::int64_t>());
    draws_ += 1;
    optimizer_->zero_grad();
    const auto& x = batch.at("x");
    const auto loss = (x.matmul(weight_) - x.sum(1, true).sin()).pow(2).mean();
    loss.backward();
    optimizer_->step();
    return {{"loss", loss.item<double>()}};
  }
  TensorMap parameters() override { return {{"weight", weight_.detach()}}; }
  TensorMap optimizer_state() override {
    auto state = optimizer_->state();
    state["random.draws"] = draws_;
    return state;
  }
  /// Since the stream's seed.
  std::int64_t draws(int member) {
    return draws_.item<std::int64_t>() - static_cast<std::int64_t>(replica_seed(1, member));
  }
  void load(const TensorMap& parameters, const TensorMap& state) override {
    const at::NoGradGuard guard;
    weight_.copy_(parameters.at("weight"));
    draws_ = state.at("random.draws").clone();
    optimizer_->load(state);
  }

private:
  std::function<void(std::int64_t)> before_step_;
  at::Tensor weight_;
  at::Tensor draws_; // a random stream that counts how far it is
  std::unique_ptr<WrappedOptimizer> optimizer_;
};

at::Tensor undisturbed(std::int64_t steps = kSteps) {
  ReplicaContext context(nullptr);
  Regression one;
  one.build(context);
  const auto input = one.input_fn({});
  for (std::int64_t step = 0; step < steps; ++step)
    one.step_fn(context, input());
  return one.parameters().at("weight").clone();
}

ElasticGroup::Options options_with(collectives::StoreFactory factory) {
  ElasticGroup::Options options;
  options.factory = std::move(factory);
  options.communicator.timeout = milliseconds(20'000);
  options.communicator.connect_timeout = milliseconds(20'000);
  options.regroup_deadline = milliseconds(20'000);
  return options;
}

std::vector<std::string> on_threads(int size, const std::function<void(int)>& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const Killed&) {
        errors[static_cast<std::size_t>(rank)] = "killed";
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  threads.clear();
  return errors;
}

} // namespace

TEST_CASE("survivors go on from the same step and end where an undisturbed run ends") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto options = options_with(collectives::threads_over_store());
  std::vector<at::Tensor> weights(4);
  std::vector<std::vector<ElasticChange>> changes(4);
  const auto errors = on_threads(4, [&](int rank) {
    ElasticGroup group(store, "survivors", rank, 4, options);
    ElasticProgram program(group, [&] {
      return std::make_unique<Regression>([rank](std::int64_t step) {
        if ((rank == 2 && step == 7) || (rank == 0 && step == 19))
          throw Killed();
      });
    });
    program.run(kSteps);
    weights[static_cast<std::size_t>(rank)] = program.replica().parameters().at("weight").clone();
    changes[static_cast<std::size_t>(rank)] = program.changes();
    // Its own stream, whatever rank it has now; what the last common step drew is drawn again.
    CHECK(std::abs(dynamic_cast<Regression&>(program.replica()).draws(rank) - kSteps) <= 2);
  });
  CHECK(errors == std::vector<std::string>{"killed", "", "killed", ""});
  for (const std::size_t rank : {1, 3}) {
    CHECK(torch::allclose(weights[rank], undisturbed(), 1e-10, 1e-12));
    REQUIRE(changes[rank].size() == 2);
    CHECK(changes[rank][0].step == 7);
    CHECK(changes[rank][0].membership.left == std::vector<int>{2});
    CHECK(changes[rank][1].step == 19);
    CHECK(changes[rank][1].membership.size == 2);
  }
  CHECK(torch::equal(weights[1], weights[3]));
}

TEST_CASE("a newcomer is given the state, momentum and step, and shares the rest of the work") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto options = options_with(collectives::threads_over_store());
  std::vector<at::Tensor> weights(3);
  std::vector<std::int64_t> totals(3);
  std::latch under_way(1);
  const auto errors = on_threads(3, [&](int rank) {
    const auto i = static_cast<std::size_t>(rank);
    std::unique_ptr<ElasticGroup> group;
    if (rank == 2) {
      under_way.wait();
      group = ElasticGroup::join(store, "newcomer", options, milliseconds(30'000));
    } else {
      group = std::make_unique<ElasticGroup>(store, "newcomer", rank, 2, options);
    }
    ElasticProgram program(*group, [&] { return std::make_unique<Regression>(); });
    program.run(rank == 2 ? 0 : 5);
    if (rank == 0)
      under_way.count_down();
    while (group->communicator().size() < 3) // in step with each other
      program.run(program.steps() + 1);
    totals[i] = (rank == 2 ? program.steps() : program.changes().back().step) + 20;
    program.run(totals[i]);
    weights[i] = program.replica().parameters().at("weight").clone();
    const auto draws = dynamic_cast<Regression&>(program.replica()).draws(group->member());
    CHECK(draws == (rank == 2 ? 20 : totals[i])); // a newcomer's stream is a new one
    CHECK((group->member() == rank) == (rank < 2));
  });
  REQUIRE(errors == std::vector<std::string>(3));
  CHECK(totals[0] == totals[2]);
  for (const auto& weight : weights)
    CHECK(torch::allclose(weight, undisturbed(totals[0]), 1e-10, 1e-12));
}

TEST_CASE("under local SGD survivors go on from one of theirs, in a smaller group") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto options = options_with(collectives::threads_over_store());
  std::vector<at::Tensor> weights(3);
  const auto errors = on_threads(3, [&](int rank) {
    ElasticGroup group(store, "local", rank, 3, options);
    ElasticProgram program(group,
                           [&] {
                             return std::make_unique<Regression>([rank](std::int64_t step) {
                               if (rank == 1 && step == 10)
                                 throw Killed();
                             });
                           },
                           {.rules = [](collectives::Communicator& communicator) {
                             return local_sgd_rules(&communicator, {.period = 4});
                           }});
    program.run(kSteps);
    CHECK(program.changes().size() == 1);
    const auto made = kSteps - program.changes()[0].step;
    program.run(kSteps + (4 - made % 4) % 4); // to an averaging
    weights[static_cast<std::size_t>(rank)] = program.replica().parameters().at("weight").clone();
  });
  CHECK(errors == std::vector<std::string>{"", "killed", ""});
  CHECK(torch::equal(weights[0], weights[2]));
  CHECK((weights[0] - undisturbed(400)).norm().item<double>()
        < 0.2 * undisturbed(400).norm().item<double>());
}

TEST_CASE("a replica that fails by itself leaves the others to go on") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto options = options_with(collectives::threads_over_store());
  const auto errors = on_threads(2, [&](int rank) {
    ElasticGroup group(store, "failing", rank, 2, options);
    ElasticProgram program(group, [&] {
      return std::make_unique<Regression>([rank](std::int64_t step) {
        if (rank == 1 && step == 3)
          throw std::runtime_error("no such frame");
      });
    });
    program.run(kSteps);
    CHECK(program.steps() == kSteps);
  });
  CHECK(errors == std::vector<std::string>{"", "no such frame"});
}

} // namespace troupe::learner
