// What the histograms of parameters and actions count.
#include "tests/doctest_torch.hpp"

#include <limits>
#include <numeric>

#include "actors/roles/role_histograms.hpp"
#include "actors/run/distribution_reports.hpp"
#include "learner/replicas/replica.hpp"

namespace troupe::actors {
namespace {

using learner::Histogram;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Two layers, a target network and optimizer state.
class TwoLayers : public learner::Replica {
public:
  void build(learner::ReplicaContext&) override {}
  learner::Input input_fn(const learner::InputContext&) override { return {}; }
  learner::Metrics step_fn(learner::ReplicaContext&, const learner::TensorMap&) override {
    return {};
  }
  learner::TensorMap parameters() override {
    return {{"a.weight", at::linspace(-1, 1, 64).reshape({8, 8}).t()},
            {"b.weight", at::ones({200'000})},
            {"counter", at::ones({1}, at::kLong)},
            {"target.a.weight", at::zeros({8, 8})}};
  }
  learner::TensorMap optimizer_state() override {
    return {{"adam.exp_avg.a.weight", at::full({8, 8}, 0.25)},
            {"adam.exp_avg_sq.a.weight", at::ones({8, 8})},
            {"counters.updates", at::ones({1}, at::kLong)}};
  }
  void load(const learner::TensorMap&, const learner::TensorMap&) override {}
};

TEST_CASE("A histogram counts every finite value once and keeps the moments") {
  Histogram made(-1, 1, 4);
  for (const double value : {-1.0, -0.5, 0.0, 0.49, 1.0, 7.0, -7.0, kNaN})
    made.add(value);
  CHECK(made.counts == std::vector<std::int64_t>{2, 1, 2, 2}); // outliers in the outermost bins
  CHECK(made.count == 7);
  CHECK(made.minimum == -7);
  CHECK(made.maximum == 7);
  CHECK(made.sum == doctest::Approx(-0.01));
  CHECK(made.sum_squares == doctest::Approx(1 + 0.25 + 0.2401 + 1 + 49 + 49));
  Histogram other(-1, 1, 4);
  other.add(8);
  made.add(other);
  CHECK(made.maximum == 8);
  CHECK(made.count == 8);
  CHECK(made.counts[3] == 3);
  CHECK_THROWS_WITH_AS(made.add(Histogram(-1, 1, 5)), doctest::Contains("other bins"),
                       std::invalid_argument);
  CHECK_THROWS_AS(Histogram(1, 1), std::invalid_argument);
}

TEST_CASE(
    "Histogram bins span the values, including a single value, no values and extreme values") {
  const std::vector<double> one{5, 5, 5}, none{kNaN};
  CHECK(learner::histogram_of(one).count == 3);
  CHECK(learner::histogram_of(one).low < 5);
  CHECK(learner::histogram_of(none).count == 0);
  const std::vector<double> huge{-std::numeric_limits<double>::max(),
                                 std::numeric_limits<double>::max()};
  const Histogram wide = learner::histogram_of(huge, 2);
  CHECK(wide.counts == std::vector<std::int64_t>{1, 1});
}

TEST_CASE(
    "A learner's histograms cover its layers and mean gradients but not its target networks") {
  TwoLayers replica;
  const auto made = learner_histograms(replica).histograms();
  REQUIRE(made.size() == 3);
  const Histogram a = histogram_of(made.at("parameters/a.weight"));
  CHECK(a.count == 64);
  CHECK(a.minimum == -1);
  CHECK(a.maximum == 1);
  CHECK(a.counts == std::vector<std::int64_t>(Histogram::kBins, 2)); // evenly spaced values
  const Histogram b = histogram_of(made.at("parameters/b.weight"));
  CHECK(b.count > 10'000); // large tensors are sampled
  CHECK(b.count <= 65'536);
  CHECK(histogram_of(made.at("gradient_means/a.weight")).maximum == 0.25);
}

TEST_CASE("Action histograms have one bin for each choice or bins from -1 to 1") {
  replay::TransitionSpec numbers;
  numbers.action_size = 2;
  ActionHistograms continuous(numbers);
  continuous.add(std::vector<float>{-1, 0.5F, 1, 0.5F});
  const auto first = continuous.take().histograms();
  REQUIRE(first.size() == 2);
  CHECK(first.at("actions/0").minimum() == -1);
  CHECK(first.at("actions/0").maximum() == 1);
  CHECK(first.at("actions/1").count() == 2);
  CHECK(continuous.take().histograms().at("actions/1").count() == 0); // each action is counted once

  replay::TransitionSpec choice;
  choice.action_size = 1;
  choice.action_choices = {3};
  ActionHistograms discrete(choice);
  discrete.add(std::vector<float>{0, 2, 2});
  const Histogram made = histogram_of(discrete.take().histograms().at("actions"));
  CHECK(made.counts == std::vector<std::int64_t>{1, 0, 2});

  replay::TransitionSpec many;
  many.action_size = 40;
  ActionHistograms together(many);
  together.add(std::vector<float>(80, 0.1F));
  CHECK(together.take().histograms().at("actions").count() == 80);
}

TEST_CASE("A histogram from another process is validated") {
  wire::Histogram hostile;
  CHECK_THROWS_WITH_AS(histogram_of(hostile), doctest::Contains("0 bins"), std::invalid_argument);
  hostile.mutable_counts()->Resize(1000, 1);
  CHECK_THROWS_WITH_AS(histogram_of(hostile), doctest::Contains("1000 bins"),
                       std::invalid_argument);
  hostile.mutable_counts()->Resize(4, 1);
  hostile.set_low(kNaN);
  CHECK_THROWS_AS(histogram_of(hostile), std::invalid_argument);
}

TEST_CASE("A run of ten thousand evaluations writes histograms for a few hundred of them") {
  std::int64_t written = 0, late = 0;
  for (std::int64_t call = 0; call < 10'000; ++call) {
    written += DistributionReports::counts(call) ? 1 : 0;
    late += call >= 5000 && DistributionReports::counts(call) ? 1 : 0;
  }
  CHECK(DistributionReports::counts(0));
  CHECK(DistributionReports::counts(63));
  CHECK(written > 200);
  CHECK(written < 400);
  CHECK(late > 10);
}

} // namespace
} // namespace troupe::actors
