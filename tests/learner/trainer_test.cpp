#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include <filesystem>
#include <fstream>
#include <set>

#include "learner/trainer.hpp"

namespace troupe::learner {
namespace {

/// A classifier of points by the quadrant that they lie in.
class Quadrants : public TrainerModel {
public:
  explicit Quadrants(double learning_rate = 0.1) : learning_rate_(learning_rate) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
    const at::NoGradGuard guard;
    network_ = torch::nn::Sequential(torch::nn::Linear(2, 16), torch::nn::BatchNorm1d(16),
                                     torch::nn::ReLU(), torch::nn::Linear(16, 4));
    network_->to(at::kDouble);
    for (auto& parameter : network_->parameters())
      if (parameter.dim() == 2)
        parameter.normal_(0, 0.5, generator);
      else if (parameter.numel() == 4)
        parameter.zero_();
    for (auto& item : network_->named_parameters())
      if (item.key() == "0.bias")
        item.value().zero_();
  }
  torch::nn::Module& module() override { return *network_; }
  std::unique_ptr<torch::optim::Optimizer> make_optimizer() override {
    return std::make_unique<torch::optim::SGD>(
        network_->parameters(), torch::optim::SGDOptions(learning_rate_).momentum(0.9));
  }
  at::Tensor loss(const TensorMap& batch) override {
    return torch::nn::functional::cross_entropy(network_->forward(batch.at("x")), batch.at("y"));
  }
  TensorMap measure(const TensorMap& batch) override {
    const auto logits = network_->forward(batch.at("x"));
    return {{"accuracy", logits.argmax(1).eq(batch.at("y"))},
            {"loss", torch::nn::functional::cross_entropy(
                         logits, batch.at("y"),
                         torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone))},
            {"ones", torch::ones(logits.size(0))}};
  }

private:
  double learning_rate_;
  torch::nn::Sequential network_{nullptr};
};

TensorDataset points(std::int64_t rows, std::uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto x = torch::randn({rows, 2}, generator, at::kDouble);
  const auto y = x.select(1, 0).gt(0).to(at::kLong) * 2 + x.select(1, 1).gt(0).to(at::kLong);
  return TensorDataset({{"x", x}, {"y", y}});
}

struct Run {
  explicit Run(int replicas, const TrainerOptions& options = {}, std::size_t timeline = 0)
      : replicator(make_mirrored_strategy(replicas), {.timeline = timeline}),
        trainer(
            replicator, [](ReplicaContext&) { return std::make_unique<Quadrants>(); }, options) {}
  TensorMap parameters(int local_id = 0) {
    TensorMap result;
    for (const auto& item : trainer.model(local_id).module().named_parameters())
      result[item.key()] = item.value().detach().clone();
    for (const auto& item : trainer.model(local_id).module().named_buffers())
      result[item.key()] = item.value().clone();
    return result;
  }
  Replicator replicator;
  Trainer trainer;
};

bool close(const TensorMap& a, const TensorMap& b) {
  for (const auto& [name, tensor] : b)
    if (!torch::allclose(a.at(name), tensor, 1e-8, 1e-9))
      return false;
  return true;
}

std::filesystem::path fresh(const std::string& name) {
  return std::filesystem::temp_directory_path() / (name + std::to_string(::getpid()));
}

} // namespace

TEST_CASE("a model is fitted and evaluated, alike on 1, 2 and 4 replicas") {
  const auto training = points(500, 1), validation = points(101, 2);
  const TrainerOptions options{.global_batch = 32, .keep_last = true, .global_batch_norm = true};
  Run alone(1, options);
  const auto expected = alone.trainer.fit(training, 3, &validation);
  REQUIRE(expected.size() == 3);
  CHECK(expected[2].metrics.at("validation_accuracy") > 0.9);
  CHECK(expected[2].metrics.at("validation_ones") == 1); // every row once
  CHECK(expected[2].steps == 3 * 16);                    // 500 rows are 15 batches and 20 rows
  for (const int replicas : {2, 4}) {
    auto more = options;
    more.prefetch = {.threads = replicas - 1, .ahead = 2 * replicas}; // changes nothing
    Run run(replicas, more);
    const auto reports = run.trainer.fit(training, 3, &validation);
    for (std::size_t epoch = 0; epoch < 3; ++epoch)
      for (const auto& [name, value] : expected[epoch].metrics)
        CHECK(reports[epoch].metrics.at(name) == doctest::Approx(value).epsilon(1e-8));
    CHECK(close(run.parameters(0), alone.parameters()));
    CHECK(close(run.parameters(replicas - 1), alone.parameters()));
  }
}

TEST_CASE("an epoch's rows are shared without overlap, shuffled anew, the same for any number") {
  for (const int replicas : {1, 2, 4})
    for (const int groups : {1, 3}) {
      std::multiset<std::int64_t> seen;
      std::vector<at::Tensor> batches;
      EpochPlan plan{.dataset_rows = 103,
                     .global_batch = 8,
                     .groups = groups,
                     .replicas = replicas,
                     .seed = 9};
      for (plan.group = 0; plan.group < groups; ++plan.group)
        for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
          std::vector<at::Tensor> parts;
          for (plan.rank = 0; plan.rank < replicas; ++plan.rank) {
            parts.push_back(plan.part(plan.order(2), step));
            CHECK(parts.back().size(0) == 8 / replicas);
            CHECK(plan.weight(step) == 1);
          }
          batches.push_back(torch::cat(parts));
          for (std::int64_t i = 0; i < 8; ++i)
            seen.insert(batches.back()[i].item<std::int64_t>());
        }
      CHECK(static_cast<std::int64_t>(seen.size()) == 103 - plan.dropped_rows());
      CHECK(std::set<std::int64_t>(seen.begin(), seen.end()).size() == seen.size());
      plan.group = 0;
      CHECK(torch::equal(batches[0], plan.order(2).narrow(0, 0, 8)));
      CHECK_FALSE(torch::equal(plan.order(2), plan.order(3)));
    }
}

TEST_CASE("the batch at the end is kept where every replica has a row, weighted by its rows") {
  EpochPlan plan{.dataset_rows = 21, .global_batch = 8, .replicas = 4, .keep_last = true};
  CHECK(plan.steps_per_epoch() == 3);
  CHECK(plan.dropped_rows() == 0);
  double weights = 0;
  std::int64_t rows = 0;
  for (plan.rank = 0; plan.rank < 4; ++plan.rank) {
    const auto mine = plan.part(plan.order(0), 2).size(0);
    CHECK(plan.weight(2) == doctest::Approx(4.0 * static_cast<double>(mine) / 5));
    weights += plan.weight(2);
    rows += mine;
  }
  CHECK(weights == doctest::Approx(4));
  CHECK(rows == 5);
  plan.dataset_rows = 19; // 3 rows for 4 replicas
  CHECK(plan.steps_per_epoch() == 2);
  CHECK(plan.dropped_rows() == 3);
}

TEST_CASE(
    "what was saved goes on as if it had not been interrupted, on another number of replicas") {
  const auto training = points(256, 1);
  const TrainerOptions options{.global_batch_norm = true};
  const auto path = fresh("trainer_saved");
  Run whole(1, options);
  whole.trainer.fit(training, 4);
  {
    Run first(2, options);
    first.trainer.fit(training, 2);
    first.trainer.save(path);
  }
  Run second(4, options);
  second.trainer.load(path);
  CHECK(second.trainer.epochs() == 2);
  const auto reports = second.trainer.fit(training, 4);
  CHECK(reports.size() == 2);
  CHECK(close(second.parameters(3), whole.parameters()));
  std::ofstream(path, std::ios::trunc) << "no";
  CHECK_THROWS_AS(second.trainer.load(path), std::runtime_error);
  std::filesystem::remove(path);
}

TEST_CASE("callbacks see every period and epoch, stop early, save the best and write a table") {
  struct Count : Callback {
    int epochs = 0, periods = 0;
    bool after_steps(Trainer&, const TrainerReport& report) override {
      ++periods;
      return report.steps < 20;
    }
    bool after_epoch(Trainer&, const TrainerReport&) override {
      ++epochs;
      return true;
    }
  } count;
  const auto training = points(256, 1);
  Run run(2, {.report_period = 3});
  CHECK(run.trainer.fit(training, 50, nullptr, {&count}).size() == 3);
  CHECK(count.epochs == 3);
  CHECK(count.periods == 3 + 3 + 2); // 8 steps an epoch, then steps 19 and 22
  Run other(2);
  const auto table = fresh("trainer_table"), best = fresh("trainer_best");
  const auto stop = stop_early("validation_never_better", 2);
  const auto save = save_best(best, "validation_loss");
  const auto log = log_csv(table);
  CHECK_THROWS_WITH_AS(
      other.trainer.fit(training, 9, nullptr, {stop.get()}),
      "trainer: there is no metric \"validation_never_better\"; there are \"loss\"",
      std::invalid_argument);
  const auto patient = stop_early("validation_ones", 2);
  const auto reports =
      other.trainer.fit(training, 9, &training, {patient.get(), save.get(), log.get()});
  CHECK(reports.size() == 3); // the first is an improvement on nothing
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);
  CHECK(line == "epoch,steps,loss,validation_accuracy,validation_loss,validation_ones");
  CHECK(std::filesystem::exists(best));
  std::filesystem::remove(table);
  std::filesystem::remove(best);
}

TEST_CASE("what does not fit is refused in words") {
  Run run(2, {.global_batch = 32});
  CHECK_THROWS_WITH_AS(
      run.trainer.fit(points(31, 1), 1),
      doctest::Contains("the data set has 31 rows, fewer than 1 global batches of 32"),
      std::invalid_argument);
  Run odd(2, {.global_batch = 31});
  CHECK_THROWS_WITH_AS(odd.trainer.fit(points(64, 1), 1),
                       doctest::Contains("does not divide over 2 replicas"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(TensorDataset({{"x", torch::zeros({3})}, {"y", torch::zeros({2})}}),
                       "dataset: \"y\" has 2 rows, \"x\" another number; give all the same",
                       std::invalid_argument);
}

TEST_CASE("the trainer's timeline has input, forward, backward and step") {
  Run run(2, {}, 1000);
  run.trainer.fit(points(64, 1), 1);
  const auto path = fresh("trainer_timeline");
  run.replicator.write_timeline(path);
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  for (const std::string name : {"input", "forward", "backward", "step"})
    CHECK(text.find("\"name\":\"" + name + '"') != std::string::npos);
}

} // namespace troupe::learner
