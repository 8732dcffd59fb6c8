#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include <random>

#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/replicas/replicator.hpp"
#include "learner/replicas/strategy_options.hpp"
#include "tests/text.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kLineBatch = 24;
constexpr int kSteps = 200;

/// Fits y = 3 x0 - 2 x1, without knowledge of strategies.
class Line {
public:
  explicit Line(ReplicaContext& context)
      : slope_(torch::zeros({2, 1}, at::kDouble).requires_grad_()),
        optimizer_(context.wrap_optimizer(std::make_unique<torch::optim::SGD>(
            std::vector<at::Tensor>{slope_}, torch::optim::SGDOptions(0.05)))) {}
  TensorMap step(const TensorMap& batch) {
    optimizer_->zero_grad();
    const auto& x = batch.at("x");
    const auto loss =
        (x.matmul(slope_) - x.matmul(torch::tensor({{3.0}, {-2.0}}, at::kDouble))).pow(2).mean();
    loss.backward();
    optimizer_->step();
    return {{"loss", loss.detach()}};
  }
  at::Tensor slope() const { return slope_.detach().clone(); }

private:
  at::Tensor slope_;
  std::unique_ptr<WrappedOptimizer> optimizer_;
};

Input line_rows(const InputContext& context) {
  const auto mine = context.per_replica_batch_size(kLineBatch);
  const int parts = static_cast<int>(kLineBatch / mine);
  return [=, step = 0]() mutable {
    const auto x =
        torch::sin(torch::arange(kLineBatch * 2, at::kDouble) * 1.7 + ++step).view({kLineBatch, 2});
    return part_of_batch({{"x", x}}, context.input_pipeline_id % parts, parts);
  };
}

/// The slopes of all replicas.
std::vector<at::Tensor> trained(const std::string& strategy) {
  Replicator replicator(make_strategy(parse_strategy(strategy)));
  const auto lines = replicator.build<Line>(
      [](ReplicaContext& context) { return std::make_shared<Line>(context); });
  const auto input = replicator.input(line_rows);
  replicator.call([&](ReplicaContext& context) {
    for (int step = 0; step < kSteps; ++step)
      lines.of(context).step(input->next(context));
    return TensorMap{};
  });
  std::vector<at::Tensor> slopes;
  for (int i = 0; i < replicator.size(); ++i)
    slopes.push_back(lines[i].slope());
  return slopes;
}

} // namespace

TEST_CASE("Synchronous strategies equal one device for any number of replicas") {
  const auto alone = trained("one_device")[0];
  for (const std::string strategy :
       {"mirrored replicas=2", "mirrored replicas=4", "multi_worker replicas=3",
        "central_storage replicas=2", "central_storage replicas=4",
        "local_sgd replicas=3 local_steps=1", "sync_groups replicas=4 sync_groups=1",
        "parameter_server replicas=1"}) {
    CAPTURE(strategy);
    for (const auto& slope : trained(strategy))
      CHECK(torch::allclose(slope, alone, 1e-9, 1e-10));
  }
}

TEST_CASE("Asynchronous strategies learn the same line by configuration alone") {
  const auto truth = torch::tensor({{3.0}, {-2.0}}, at::kDouble);
  for (const std::string strategy :
       {"parameter_server replicas=4", "parameter_server replicas=4 max_staleness=8",
        "parameter_server replicas=3 max_lead=2 staleness_rate=inverse_plus_one",
        "sync_groups replicas=4 sync_groups=2", "backup_workers replicas=5 backup_workers=1",
        "local_sgd replicas=4 local_steps=10", "local_sgd replicas=2 average_moments=true"}) {
    CAPTURE(strategy);
    for (const auto& slope : trained(strategy))
      CHECK(torch::allclose(slope, truth, 0.05, 0.05));
  }
}

TEST_CASE("Assignments identify each replica and its sync group") {
  const auto assignments = [](const std::string& text) {
    Replicator replicator(make_strategy(parse_strategy(text)));
    std::vector<std::string> result(static_cast<std::size_t>(replicator.size()));
    replicator.call([&](ReplicaContext& context) {
      result[static_cast<std::size_t>(context.local_id())] =
          std::to_string(context.replica_id()) + " of " + std::to_string(context.num_replicas())
          + ", group " + std::to_string(context.sync_group()) + " of "
          + std::to_string(context.num_sync_groups()) + ", "
          + std::to_string(context.rank_in_sync_group()) + " of "
          + std::to_string(context.num_replicas_in_sync())
          + (context.has_collectives() ? "" : ", alone");
      return TensorMap{};
    });
    return result;
  };
  CHECK(assignments("sync_groups replicas=4 sync_groups=2").at(3)
        == "3 of 4, group 1 of 2, 1 of 2");
  CHECK(assignments("parameter_server replicas=3").at(2) == "2 of 3, group 2 of 3, 0 of 1");
  CHECK(assignments("backup_workers replicas=5 backup_workers=2").at(4)
        == "4 of 5, group 0 of 1, 0 of 3, alone");
  CHECK(assignments("central_storage replicas=2").at(1) == "1 of 2, group 0 of 1, 1 of 2");
}

TEST_CASE("No text is parsed to a strategy with values out of range") {
  const std::vector<std::string> seeds{
      "mirrored replicas=2", "parameter_server replicas=4 max_staleness=8 staleness_rate=inverse",
      "sync_groups replicas=6 sync_groups=3 servers=tcp://a:1,tcp://b:2", "local_sgd local_steps=4",
      "backup_workers replicas=3 backup_workers=1 timeout_seconds=9 average_moments=true"};
  std::mt19937 random(3);
  int taken = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto text = seeds[random() % seeds.size()];
    for (auto left = 1 + random() % 3; left > 0 && !text.empty(); --left) {
      const auto at = random() % text.size();
      const std::string letters("=0129- ,\0\n\xff", 12);
      if (random() % 2 == 0)
        text[at] = letters[random() % letters.size()];
      else
        text.erase(at, 1 + random() % 6);
    }
    try {
      const auto options = parse_strategy(text);
      ++taken;
      REQUIRE((options.replicas >= 1 && options.replicas <= 1024));
      REQUIRE(
          (options.sync_groups >= 1 && options.backup_workers >= 0 && options.local_steps >= 1));
      REQUIRE((options.max_staleness.value_or(0) >= 0 && options.max_lead.value_or(1) >= 1));
      REQUIRE(options.communicator.timeout.count() > 0);
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  }
  CHECK(taken > 100);
  CHECK(refused > 100);
}

TEST_CASE("An invalid configuration is refused, and the error names the valid choices") {
  const auto said = [](const std::string& text, int processes = 1) {
    collectives::ProcessTopology place;
    place.size = processes;
    return error_of<std::invalid_argument>([&] { make_strategy(parse_strategy(text), place); });
  };
  CHECK(said("")
        == "strategy: the text is empty; give one of its names first, e.g. \"mirrored "
           "replicas=2\"");
  CHECK(said("mirored").starts_with("strategy: kind \"mirored\" is none of backup_workers, "));
  CHECK(said("mirrored replicas") == "strategy: key \"replicas\" has no value; write key=value");
  CHECK(said("mirrored replicas=0")
        == "strategy: replicas \"0\" must be a whole number from 1 to 1024");
  CHECK(said("mirrored replica=2").starts_with("strategy: key \"replica\" is none of "));
  CHECK(said("one_device replicas=2")
        == "strategy one_device: 2 replicas are too many; use mirrored, or multi_worker");
  CHECK(said("sync_groups replicas=3 sync_groups=2")
        == "strategy sync_groups: 3 replicas cannot be split evenly over sync_groups 2");
  CHECK(said("backup_workers replicas=2 backup_workers=2")
        == "strategy backup_workers: backup_workers 2 must be fewer than the replicas, 2");
  CHECK(said("parameter_server staleness_rate=fast")
        == "strategy: staleness_rate \"fast\" is none of constant, inverse, inverse_plus_one");
  for (const std::string text :
       {"multi_worker replicas=2 backend=mpi", "sync_groups sync_groups=2 backend=mpi"})
    CHECK(has(said(text, 4), "backend mpi connects one replica of each process in one group; use "
                             "replicas=1 in one group, or another backend"));
}

} // namespace troupe::learner
