#include <torch/nn.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include <atomic>
#include <fstream>

#include <nlohmann/json.hpp>

#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/replicas/replicator.hpp"
#include "learner/replicas/strategy_options.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/learner/worker_strategy.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::learner {
namespace {

using collectives::Communicator;
using collectives::Means;
using collectives::on_ranks;

constexpr std::int64_t kGlobalBatch = 12;

/// Rows that identify their origin: [pipeline, batch, row].
Input counted_rows(const InputContext& context) {
  const auto rows = context.per_pipeline_batch_size(kGlobalBatch);
  return [=, batch = 0, pipeline = context.input_pipeline_id]() mutable {
    auto x = torch::zeros({rows, 3});
    x.select(1, 0).fill_(pipeline);
    x.select(1, 1).fill_(batch++);
    x.select(1, 2).copy_(torch::arange(rows));
    return TensorMap{{"x", x}};
  };
}

TensorMap echo(ReplicaContext&, const TensorMap& batch) {
  return batch;
}

/// A generator and a critic with one parameter each: two step functions, two optimizers.
class Pair {
public:
  explicit Pair(ReplicaContext& context)
      : made_(torch::full({1}, 1.0 + context.replica_id()).requires_grad_()),
        slope_(torch::zeros({1}).requires_grad_()),
        generator_(wrap(context, made_)),
        critic_(wrap(context, slope_)) {}

  TensorMap critic_step(const TensorMap& batch) {
    critic_->zero_grad();
    const auto loss = slope_ * (made_.detach() - batch.at("x").mean()) + slope_.pow(2) / 2;
    loss.backward();
    critic_->step();
    return {{"critic_loss", loss.detach().squeeze()}};
  }
  TensorMap generator_step() {
    generator_->zero_grad();
    const auto loss = -slope_.detach() * made_;
    loss.backward();
    generator_->step();
    return {{"made", made_.detach().squeeze()}};
  }
  double made() const { return made_.item<double>(); }

private:
  static std::unique_ptr<WrappedOptimizer> wrap(ReplicaContext& context, const at::Tensor& tensor) {
    return context.wrap_optimizer(std::make_unique<torch::optim::SGD>(
        std::vector<at::Tensor>{tensor}, torch::optim::SGDOptions(0.3)));
  }
  at::Tensor made_, slope_;
  std::unique_ptr<WrappedOptimizer> generator_, critic_;
};

double trained_pair(int replicas) {
  Replicator replicator(make_mirrored_strategy(replicas));
  const auto pair = replicator.build<Pair>(
      [](ReplicaContext& context) { return std::make_shared<Pair>(context); });
  const auto data = replicator.input([](const InputContext& context) {
    return [=] {
      const auto all = torch::arange(1, 1 + kGlobalBatch, at::kFloat).view({kGlobalBatch, 1});
      return part_of_batch({{"x", all}}, context.input_pipeline_id, context.num_input_pipelines);
    };
  });
  for (int i = 0; i < 60; ++i) { // the caller's own loop: two steps of one, then one of the other
    for (int k = 0; k < 2; ++k)
      replicator.step(*data, [&](ReplicaContext& context, const TensorMap& batch) {
        return pair.of(context).critic_step(batch);
      });
    replicator.call([&](ReplicaContext& context) { return pair.of(context).generator_step(); });
  }
  for (int i = 1; i < replicas; ++i)
    CHECK(pair[i].made() == pair[0].made());
  return pair[0].made();
}

} // namespace

TEST_CASE("With one pipeline per replica, each replica gets its number and its share of the rows") {
  Replicator replicator(make_mirrored_strategy(3));
  const auto input = replicator.input(counted_rows);
  for (int step = 0; step < 3; ++step) {
    const auto batches = replicator.step(*input, echo).value();
    for (std::size_t id = 0; id < 3; ++id) {
      const auto x = batches[id].at("x");
      REQUIRE(x.size(0) == 4);
      CHECK(x.select(1, 0).eq(static_cast<int>(id)).all().item<bool>());
      CHECK(x.select(1, 1).eq(step).all().item<bool>());
    }
  }
}

TEST_CASE(
    "With one pipeline per worker, its batch is split by rows over the replicas of the process") {
  Replicator replicator(make_mirrored_strategy(3));
  std::atomic<int> pipelines = 0;
  const auto input = replicator.input(
      [&](const InputContext& context) {
        ++pipelines;
        CHECK(context.num_input_pipelines == 1);
        CHECK(context.num_replicas_in_sync == 3);
        return counted_rows(context);
      },
      {.pipelines = Pipelines::per_worker});
  for (int step = 0; step < 5; ++step) {
    const auto all = replicator.gather(replicator.step(*input, echo).value()).at("x");
    CHECK(torch::equal(all.select(1, 2), torch::arange(kGlobalBatch).to(at::kFloat)));
    CHECK(all.select(1, 1).eq(step).all().item<bool>());
  }
  CHECK(pipelines == 1);
}

TEST_CASE("A single pipeline feeds all processes, and their replicas share its global batch") {
  std::atomic<int> pipelines = 0;
  const auto errors = on_ranks(Means::threads, 3, [&](Communicator& communicator) {
    Replicator replicator(make_worker_strategy(communicator));
    const auto input = replicator.input(
        [&](const InputContext& context) {
          ++pipelines;
          return [next = counted_rows(context), left = 2]() mutable {
            return left-- > 0 ? next() : TensorMap{};
          };
        },
        {.pipelines = Pipelines::single, .finite = true});
    for (int step = 0; step < 2; ++step) {
      const auto mine = replicator.step(*input, echo).value();
      if (mine[0].at("x").size(0) != 4)
        throw std::runtime_error("not a third of the rows");
      const auto all = replicator.gather(mine).at("x");
      if (!torch::equal(all.select(1, 2), torch::arange(kGlobalBatch).to(at::kFloat)))
        throw std::runtime_error("the rows are not all there, in order");
    }
    if (replicator.step(*input, echo))
      throw std::runtime_error("the input did not end");
  });
  CHECK(errors == std::vector<std::string>(3));
  CHECK(pipelines == 1);
}

TEST_CASE("A global batch that is not divisible is refused with both numbers") {
  Replicator replicator(make_mirrored_strategy(5));
  const auto input = replicator.input(counted_rows);
  CHECK_THROWS_WITH_AS(
      replicator.step(*input, echo),
      doctest::Contains("the global batch size 12 cannot be split evenly over 5 replicas"),
      ReplicaError);
  Replicator two(make_mirrored_strategy(2));
  const auto odd = two.input(
      [](const InputContext&) { return [] {
                                  return TensorMap{{"x", torch::zeros({3})}};
                                }; },
      {.pipelines = Pipelines::per_worker});
  CHECK_THROWS_WITH_AS(
      two.step(*odd, echo),
      doctest::Contains("the rows of \"x\", 3 cannot be split evenly over 2 replicas"),
      ReplicaError);
}

TEST_CASE(
    "A program with two step functions and two optimizers is the same on 1, 2 and 4 replicas") {
  const double alone = trained_pair(1);
  CHECK(alone == doctest::Approx(6.5).epsilon(0.01)); // the data's mean
  CHECK(trained_pair(2) == doctest::Approx(alone).epsilon(1e-4));
  CHECK(trained_pair(4) == doctest::Approx(alone).epsilon(1e-4));
}

TEST_CASE("Outputs are kept per replica, reduced or gathered") {
  Replicator replicator(make_mirrored_strategy(3));
  const auto values = replicator.call([](ReplicaContext& context) {
    return TensorMap{{"id", torch::full({}, context.replica_id(), at::kFloat)},
                     {"rows", torch::full({context.replica_id(), 2}, context.replica_id())}};
  });
  CHECK(values[2].at("id").item<float>() == 2);
  const auto ids = [&] {
    PerReplica result;
    for (const auto& one : values)
      result.push_back({{"id", one.at("id")}});
    return result;
  }();
  CHECK(replicator.reduce(ids).at("id").item<float>() == 1);
  CHECK(replicator.reduce(ids, ReduceOp::sum).at("id").item<float>() == 3);
  CHECK(replicator.reduce(ids, ReduceOp::max).at("id").item<float>() == 2);
  const auto all = replicator.gather(values);
  CHECK(torch::equal(all.at("id"), torch::arange(3).to(at::kFloat)));
  CHECK(all.at("rows").sizes() == at::IntArrayRef{3, 2});
}

TEST_CASE("The timeline of a program has every replica's inputs and steps") {
  Replicator replicator(make_mirrored_strategy(2), {.timeline = 100});
  const auto input = replicator.input(counted_rows);
  for (int step = 0; step < 3; ++step)
    replicator.step(*input, echo);
  const TemporaryFolder folder;
  const auto path = folder / "program.json";
  replicator.write_timeline(path);
  std::ifstream file(path);
  std::map<std::string, int> counts;
  const auto trace = nlohmann::json::parse(file);
  for (const auto& event : trace.at("traceEvents"))
    ++counts[event.at("name").get<std::string>() + event.at("pid").dump()];
  for (const std::string replica : {"0", "1"}) {
    CHECK(counts["input" + replica] == 3);
    CHECK(counts["step" + replica] == 3);
  }
  Replicator without(make_mirrored_strategy(1));
  CHECK_THROWS_AS(without.write_timeline(path), std::invalid_argument);
}

TEST_CASE("The pipelines of a resumed program get its next step") {
  for (const auto pipelines : {Pipelines::per_replica, Pipelines::per_worker, Pipelines::single}) {
    Replicator replicator(make_mirrored_strategy(2));
    std::atomic<int> right = 0;
    const auto input = replicator.input(
        [&](const InputContext& context) {
          right += context.first_step == 7 ? 1 : 0;
          return counted_rows(context);
        },
        {.pipelines = pipelines, .first_step = 7});
    replicator.step(*input, echo);
    CHECK(right == (pipelines == Pipelines::per_replica ? 2 : 1));
  }
  Replicator replicator(make_mirrored_strategy(1));
  CHECK_THROWS_WITH_AS(replicator.input(counted_rows, {.first_step = -1}),
                       doctest::Contains("first_step -1"), std::invalid_argument);
}

TEST_CASE("A pipeline per process is refused for replicas that do not step together") {
  for (const std::string strategy :
       {"parameter_server replicas=2", "sync_groups replicas=4 sync_groups=2",
        "backup_workers replicas=3 backup_workers=1"}) {
    CAPTURE(strategy);
    Replicator replicator(make_strategy(parse_strategy(strategy)));
    const auto input = replicator.input(counted_rows, {.pipelines = Pipelines::per_worker});
    CHECK_THROWS_WITH_AS(replicator.step(*input, echo),
                         doctest::Contains("use one per replica with this strategy"), ReplicaError);
  }
}

} // namespace troupe::learner
