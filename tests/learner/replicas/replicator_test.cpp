#include <torch/optim/adam.h>

#include "tests/doctest_torch.hpp"

#include <set>

#include "learner/replicas/replicator.hpp"
#include "tests/learner/mlp_replica.hpp"
#include "tests/learner/replicas.hpp"

namespace troupe::learner {
namespace {

std::unique_ptr<Replica> make_mlp() {
  return std::make_unique<MlpReplica>();
}

/// Throws in its third step on replica 1.
class FailingReplica : public MlpReplica {
public:
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override {
    if (context.replica_id() == 1 && ++steps_ == 3)
      throw std::out_of_range("no such frame");
    return MlpReplica::step_fn(context, batch);
  }

private:
  int steps_ = 0;
};

/// Counts its steps. The input of replica i ends after 5 + i batches.
class CountingReplica : public Replica {
public:
  void build(ReplicaContext& context) override { seed_ = context.seed(); }
  Input input_fn(const InputContext& context) override {
    return [left = 5 + context.input_pipeline_id]() mutable {
      return left-- > 0 ? TensorMap{{"x", torch::ones({1})}} : TensorMap{};
    };
  }
  Metrics step_fn(ReplicaContext& context, const TensorMap&) override {
    return {{"steps", ++steps_}, {"replica", context.replica_id()}};
  }
  TensorMap parameters() override { return {}; }
  TensorMap optimizer_state() override { return {}; }
  void load(const TensorMap&, const TensorMap&) override {}
  std::uint64_t seed_ = 0;

private:
  double steps_ = 0;
};

} // namespace

TEST_CASE("2 and 4 replicas on their share of the batch equal 1 on the whole after 100 steps") {
  Replicas one(make_mlp, 1);
  const auto alone = one.run(100);
  for (const int count : {2, 4}) {
    Replicas many(make_mlp, count);
    const auto reports = many.run(100);
    REQUIRE(reports.size() == static_cast<std::size_t>(count));
    double loss = 0;
    for (int id = 0; id < count; ++id) {
      const auto& report = reports[static_cast<std::size_t>(id)];
      CHECK(report.steps == 100);
      CHECK(difference(many.replica(id).parameters(), one.replica(0).parameters()) < 1e-5);
      loss += report.mean.at("loss") / count;
    }
    CHECK(loss == doctest::Approx(alone[0].mean.at("loss")).epsilon(1e-9));
  }
}

TEST_CASE("A repeated run gives the same bits, in one call or in several") {
  Replicas first(make_mlp, 2);
  Replicas second(make_mlp, 2);
  first.run(20);
  second.run(5);
  second.run(15);
  for (const auto& [name, tensor] : first.replica(0).parameters()) {
    CHECK(torch::equal(tensor, second.replica(0).parameters().at(name)));
    CHECK(torch::equal(tensor, first.replica(1).parameters().at(name)));
  }
}

TEST_CASE(
    "An exception in one replica ends all of them with its message and the replica's number") {
  Replicas replicator([] { return std::make_unique<FailingReplica>(); }, 2);
  for (int again = 0; again < 2; ++again) {
    try {
      replicator.run(10);
      FAIL("nothing was thrown");
    } catch (const ReplicaError& error) {
      CHECK(error.replica_id() == 1);
      CHECK(std::string(error.what()) == "replica 1 of 2: no such frame");
      CHECK_THROWS_AS(std::rethrow_if_nested(error), std::out_of_range);
    }
  }
}

TEST_CASE("An exception in build is reported with the replica's number") {
  struct Unbuildable : MlpReplica {
    void build(ReplicaContext& context) override {
      if (context.replica_id() == 0)
        throw std::invalid_argument("no such encoder");
      MlpReplica::build(context);
    }
  };
  CHECK_THROWS_WITH_AS(Replicas([] { return std::make_unique<Unbuildable>(); }, 2),
                       "replica 0 of 2: no such encoder", ReplicaError);
}

TEST_CASE("A finite input ends on all replicas at the same step") {
  Replicas replicator([] { return std::make_unique<CountingReplica>(); }, 3, {}, {.finite = true});
  for (const auto& report : replicator.run(100))
    CHECK(report.steps == 5);
}

TEST_CASE("An input that ends unexpectedly is named") {
  Replicas replicator([] { return std::make_unique<CountingReplica>(); }, 1);
  CHECK_THROWS_WITH_AS(replicator.run(100),
                       "replica 0 of 1: the input of replica 0 ended; set `finite` where "
                       "inputs end",
                       ReplicaError);
}

TEST_CASE("The last and the mean metrics are reported per replica") {
  Replicas replicator([] { return std::make_unique<CountingReplica>(); }, 2);
  const auto reports = replicator.run(4);
  for (std::size_t id = 0; id < 2; ++id) {
    CHECK(reports[id].last.at("steps") == 4);
    CHECK(reports[id].mean.at("steps") == 2.5);
    CHECK(reports[id].last.at("replica") == static_cast<double>(id));
  }
}

TEST_CASE("Every replica has its own seed, derived from the run's") {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t run = 0; run < 20; ++run)
    for (int id = 0; id < 50; ++id)
      seeds.insert(replica_seed(run, id));
  CHECK(seeds.size() == 20 * 50);
  Replicas replicator([] { return std::make_unique<CountingReplica>(); }, 2, {.seed = 9});
  for (int id = 0; id < 2; ++id)
    CHECK(dynamic_cast<CountingReplica&>(replicator.replica(id)).seed_ == replica_seed(9, id));
}

TEST_CASE("Zero replicas or threads are refused") {
  CHECK_THROWS_AS(Replicas(make_mlp, 0), std::invalid_argument);
  CHECK_THROWS_WITH_AS(Replicas(make_mlp, 1, {.threads = 0}),
                       "replica 0 of 1: threads 0 must be at least 1", ReplicaError);
}

} // namespace troupe::learner
