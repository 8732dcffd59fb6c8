#include "tests/doctest_torch.hpp"

#include <atomic>
#include <latch>
#include <limits>
#include <memory>
#include <set>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include "learner/gradients/wrapped_optimizer.hpp"
#include "tests/actors/small_run.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::actors {
namespace {

constexpr std::int64_t kGlobalBatch = 24;
constexpr int kAwaitedSteps = 20;

struct Behaviour {
  std::int64_t ends_after = std::numeric_limits<std::int64_t>::max(); // steps of the input
  std::int64_t spoilt_at = -1;                                        // step with NaN; -1: none
  std::shared_ptr<std::latch> awaited = {}; // by replica 0, for replica 1's first kAwaitedSteps
};

/// A line fitted to rows that depend only on the step. Each replica takes its share of the rows.
class Line : public learner::Replica {
public:
  explicit Line(Behaviour behaviour) : behaviour_(behaviour) {}

  void build(learner::ReplicaContext& context) override {
    auto random = at::make_generator<at::CPUGeneratorImpl>(7);
    const at::NoGradGuard guard;
    for (auto& parameter : line_->parameters())
      parameter.normal_(0, 1, random);
    optimizer_ = context.wrap_optimizer(std::make_unique<torch::optim::Adam>(line_->parameters()));
  }

  learner::Input input_fn(const learner::InputContext& context) override {
    const auto rows = context.per_replica_batch_size(kGlobalBatch);
    const auto part = context.input_pipeline_id % context.num_replicas_in_sync;
    return [=, this, step = context.first_step]() mutable -> learner::TensorMap {
      if (step >= behaviour_.ends_after)
        return {};
      auto random = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(step));
      auto x = at::randn({kGlobalBatch, 3}, random, torch::kFloat);
      auto y = (x * at::arange(1, 4)).sum(1, true);
      if (step == behaviour_.spoilt_at)
        y[0] = std::numeric_limits<float>::quiet_NaN();
      ++step;
      return {{"x", x.narrow(0, part * rows, rows)}, {"y", y.narrow(0, part * rows, rows)}};
    };
  }

  learner::Metrics step_fn(learner::ReplicaContext& context,
                           const learner::TensorMap& batch) override {
    if (behaviour_.awaited && context.replica_id() == 0)
      behaviour_.awaited->wait();
    else if (behaviour_.awaited && ++steps_ <= kAwaitedSteps)
      behaviour_.awaited->count_down();
    optimizer_->zero_grad();
    const auto loss = (line_(batch.at("x")) - batch.at("y")).square().mean();
    loss.backward();
    optimizer_->step();
    return {{"loss", loss.item<double>()}};
  }

  learner::Metrics evaluate(learner::ReplicaContext& context) override {
    const at::NoGradGuard guard;
    const auto x = at::eye(3) * (context.rank_in_sync_group() + 1);
    const auto error = (line_(x) - (x * at::arange(1, 4)).sum(1, true)).square().mean();
    return {{"error", context.all_reduce(error).item<double>()}};
  }

  learner::TensorMap pictures() override {
    auto picture = at::zeros({3, 2, 4}, at::kByte);
    picture[1][1][3] = 200;
    return {{"samples", picture}};
  }

  learner::TensorMap parameters() override {
    return {{"weight", line_->weight.detach()}, {"bias", line_->bias.detach()}};
  }
  learner::TensorMap optimizer_state() override { return optimizer_->state(); }
  void load(const learner::TensorMap& parameters, const learner::TensorMap& state) override {
    const at::NoGradGuard guard;
    line_->weight.copy_(parameters.at("weight"));
    line_->bias.copy_(parameters.at("bias"));
    optimizer_->load(state);
  }

private:
  Behaviour behaviour_;
  int steps_ = 0;
  torch::nn::Linear line_{3, 1};
  std::unique_ptr<learner::WrappedOptimizer> optimizer_;
};

RunConfig on_data(std::int64_t updates, int replicas = 1, Behaviour behaviour = {}) {
  RunConfig config;
  config.workload = [behaviour] { return std::make_unique<Line>(behaviour); };
  config.learner.replicas = replicas;
  config.stop.updates = updates;
  config.evaluation.period = 0;
  config.checkpoint.minutes = 0;
  return config;
}

struct Watched {
  std::vector<Evaluated> evaluations;
  std::vector<std::string> lines;
  std::atomic<bool> stop = false;
  std::int64_t stop_at = std::numeric_limits<std::int64_t>::max(); // updates
};

RunResult watch(const RunConfig& config, const std::filesystem::path& folder, Watched& watched) {
  const RunCallbacks callbacks{
      .progress =
          [&](const Progress& progress) { watched.stop = progress.updates >= watched.stop_at; },
      .evaluated = [&](const Evaluated& one) { watched.evaluations.push_back(one); },
      .log = [&](const std::string&, const std::string& text) { watched.lines.push_back(text); },
      .episode = {}};
  return run(config, folder, {}, {}, callbacks, watched.stop);
}

double largest_difference(const RunResult& a, const RunResult& b) {
  double largest = 0;
  const auto right = learner::read_safetensors(b.checkpoint / "learner.safetensors").tensors;
  for (const auto& [name, tensor] :
       learner::read_safetensors(a.checkpoint / "learner.safetensors").tensors)
    largest = std::max(largest, (tensor - right.at(name)).abs().max().item<double>());
  return largest;
}

} // namespace

TEST_CASE("A run on data evaluates at each period, ends at its last update and reports metrics and "
          "pictures") {
  auto config = on_data(250);
  config.evaluation.period = 100;
  const TemporaryFolder folder;
  Watched watched;
  const auto result = watch(config, folder.path(), watched);
  REQUIRE(result.error == "");
  CHECK(result.progress.updates == 250);
  CHECK(result.progress.samples == 250 * kGlobalBatch);
  CHECK(result.progress.learner.contains("loss"));
  CHECK(result.checkpoint.filename() == "250");
  REQUIRE(watched.evaluations.size() == 3);
  CHECK(watched.evaluations[0].updates == 100);
  CHECK(watched.evaluations[1].updates == 200);
  CHECK(watched.evaluations[2].updates == 250);
  CHECK(watched.evaluations[2].final);
  CHECK(watched.evaluations[2].metrics.at("error") < watched.evaluations[0].metrics.at("error"));
  const auto& picture = watched.evaluations[0].pictures.at("samples");
  CHECK(picture.height == 2);
  CHECK(picture.width == 4);
  std::vector<std::uint8_t> expected(24);
  expected[(1 * 4 + 3) * 3 + 1] = 200;
  CHECK(picture.rgb == expected);
}

TEST_CASE("Replicas that share the data learn what one replica learns from all of it") {
  const TemporaryFolder one, three;
  const auto a = play(on_data(100), one.path());
  const auto b = play(on_data(100, 3), three.path());
  REQUIRE(a.error == "");
  REQUIRE(b.error == "");
  CHECK(b.progress.samples == 100 * kGlobalBatch);
  CHECK(largest_difference(a, b) < 1e-5);
}

TEST_CASE("A resumed run on data equals an uninterrupted one") {
  const TemporaryFolder whole, parts;
  const auto a = play(on_data(120, 2), whole.path());
  REQUIRE(a.error == "");
  const auto half = play(on_data(50, 2), parts.path());
  REQUIRE(half.error == "");
  const auto b = play(on_data(120, 2), parts.path(), half.checkpoint);
  REQUIRE(b.error == "");
  CHECK(b.progress.updates == 120);
  CHECK(b.progress.samples == 120 * kGlobalBatch);
  check_equal(a.checkpoint, b.checkpoint, "learner.safetensors"); // so the moments were restored
  CHECK(a.evaluation.metrics == b.evaluation.metrics);
}

TEST_CASE("A stopped run on data writes a checkpoint and reports that it was interrupted") {
  auto config = on_data(1'000'000'000);
  const TemporaryFolder folder;
  Watched watched;
  watched.stop_at = 20;
  const auto result = watch(config, folder.path(), watched);
  REQUIRE(result.error == "");
  CHECK(result.interrupted);
  CHECK(result.checkpoint.filename() == std::to_string(result.progress.updates));
  CHECK(watched.evaluations.empty());
}

TEST_CASE("A run on data continues while checkpoints are written") {
  auto config = on_data(3000);
  config.checkpoint.minutes = 1e-9;
  config.checkpoint.keep = 1000;
  const TemporaryFolder folder;
  const auto result = play(config, folder.path());
  REQUIRE(result.error == "");
  std::set<std::string> checkpoints;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "checkpoints"))
    checkpoints.insert(entry.path().filename());
  CHECK(checkpoints.size() > 1);
  CHECK(checkpoints.contains("3000"));
  CHECK(result.progress.updates == 3000);
}

TEST_CASE("A run on data with parameter servers ends and saves the servers' state") {
  auto config = on_data(150, 2);
  config.learner.strategy = "parameter_server max_staleness=4";
  const TemporaryFolder folder;
  Watched watched;
  const auto result = watch(config, folder.path(), watched);
  REQUIRE(result.error == "");
  CHECK(result.progress.updates == 150);
  CHECK(result.progress.learner.contains("staleness_mean"));
  CHECK(std::filesystem::exists(result.checkpoint / "servers" / "shard-0.safetensors"));
}

TEST_CASE(
    "Replicas that do not wait for each other continue without a slow first one, and all make "
    "the run's updates") {
  auto config = on_data(30, 2, {.awaited = std::make_shared<std::latch>(kAwaitedSteps)});
  config.learner.strategy = "parameter_server";
  const TemporaryFolder folder;
  const auto result = play(config, folder.path());
  REQUIRE(result.error == "");
  CHECK(result.progress.updates == 30);
  CHECK(result.progress.samples == 2 * 30 * kGlobalBatch);
}

TEST_CASE("A data error in one replica ends the run with its message") {
  const TemporaryFolder folder;
  CHECK(play(on_data(100, 2, {.ends_after = 30}), folder.path()).error.find("the data ended after")
        != std::string::npos);
  const auto spoilt = play(on_data(100, 2, {.spoilt_at = 10}), folder.path()).error;
  CAPTURE(spoilt);
  CHECK(spoilt.find("replica 0") != std::string::npos);
  CHECK_THROWS_WITH_AS(play(on_data(0), folder.path()),
                       doctest::Contains("stop.updates 0 must be at least 1"),
                       std::invalid_argument);
}

} // namespace troupe::actors
