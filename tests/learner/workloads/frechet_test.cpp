#include "tests/doctest_torch.hpp"

#include <cmath>

#include <ATen/CPUGeneratorImpl.h>

#include "learner/replicas/replica_context.hpp"
#include "learner/workloads/frechet.hpp"
#include "tests/collectives/ranks.hpp"

namespace troupe::learner {
namespace {

using collectives::Communicator;
using collectives::Means;
using collectives::on_ranks;

at::Tensor normal(at::IntArrayRef shape, std::uint64_t seed) {
  return torch::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed), at::kDouble);
}

/// A random symmetric matrix without negative eigenvalues.
at::Tensor covariance(std::int64_t n, std::uint64_t seed, std::int64_t rank = 0) {
  const auto a = normal({n, rank > 0 ? rank : 2 * n}, seed);
  return a.matmul(a.t());
}

FeatureStatistics statistics(const at::Tensor& rows, std::int64_t at_once) {
  FeatureStatistics result;
  for (const auto& part : rows.split(at_once))
    result.add(part);
  return result;
}

} // namespace

TEST_CASE("The Frechet distance of known normal distributions equals its closed form") {
  const auto mean_a = normal({4}, 1), mean_b = normal({4}, 2);
  const double means = (mean_a - mean_b).pow(2).sum().item<double>();
  // For independent features, the standard deviations are subtracted.
  const auto a = torch::tensor({1.0, 4.0, 0.0, 9.0}, at::kDouble);
  const auto b = torch::tensor({4.0, 4.0, 1.0, 0.25}, at::kDouble);
  const double spread = (a.sqrt() - b.sqrt()).pow(2).sum().item<double>();
  CHECK(frechet_distance(mean_a, a.diag(), mean_b, b.diag()) == doctest::Approx(means + spread));
  // Rotating both covariances in the same way changes nothing.
  const auto turn = std::get<0>(torch::linalg_qr(normal({4, 4}, 3)));
  const auto turned = [&](const at::Tensor& values) {
    return turn.matmul(values.diag()).matmul(turn.t());
  };
  CHECK(frechet_distance(mean_a, turned(a), mean_b, turned(b))
        == doctest::Approx(means + spread).epsilon(1e-7));
  // Covariances that do not commute: the eigenvalues of C1 C2 by LibTorch's general solver.
  const auto c = covariance(4, 5), d = covariance(4, 6);
  const auto roots = std::get<0>(torch::linalg_eig(c.matmul(d)));
  const double cross = torch::real(roots).clamp_min(0).sqrt().sum().item<double>();
  const double traces = (c.trace() + d.trace()).item<double>();
  CHECK(frechet_distance(mean_a, c, mean_a, d) == doctest::Approx(traces - 2 * cross));
  CHECK(frechet_distance(mean_b, d, mean_a, c)
        == doctest::Approx(frechet_distance(mean_a, c, mean_b, d)));
}

TEST_CASE("Equal statistics have distance 0, also if the covariance is singular") {
  const auto mean = normal({6}, 1);
  for (const std::int64_t rank : {1, 3, 12}) {
    const auto c = covariance(6, 2, rank);
    const double distance = frechet_distance(mean, c, mean, c);
    CHECK(distance >= 0);
    CHECK(distance < 1e-6 * c.trace().item<double>());
  }
  CHECK_THROWS_AS(frechet_distance(mean, covariance(6, 1), normal({5}, 1), covariance(5, 1)),
                  std::invalid_argument);
}

TEST_CASE("Statistics equal those of all rows for any portion size") {
  const auto rows = normal({101, 5}, 7) * 3 + 100;
  for (const std::int64_t at_once : {1, 7, 101}) {
    const auto mine = statistics(rows, at_once);
    CHECK(mine.rows() == 101);
    CHECK(torch::allclose(mine.mean(), rows.mean(0)));
    CHECK(torch::allclose(mine.covariance(), torch::cov(rows.t())));
  }
  FeatureStatistics none;
  CHECK_THROWS_AS(none.covariance(), std::runtime_error);
  none.add(rows);
  CHECK_THROWS_AS(none.add(normal({3, 4}, 1)), std::invalid_argument);
  CHECK_THROWS_AS(none.add(torch::full({2, 5}, NAN)), std::runtime_error);
}

TEST_CASE("The distance of samples approximates that of their distributions") {
  const auto a = normal({20000, 3}, 1);
  const auto b = normal({20000, 3}, 2) * 2 + 1;
  // 3 · (1 - 2)² + 3 · 1²
  CHECK(frechet_distance(statistics(a, 5000), statistics(b, 5000))
        == doctest::Approx(6).epsilon(0.05));
}

TEST_CASE("Replicas with uneven rows, also with none, get the statistics of all rows") {
  const auto rows = normal({12, 3}, 4), logits = normal({12, 6}, 5) * 2;
  const auto whole = statistics(rows, 12);
  ClassScore score;
  score.add(logits);
  const std::vector<std::int64_t> begins{0, 7, 7, 12};
  std::vector<FeatureStatistics> all(3);
  std::vector<ClassScore> scores(3);
  const auto errors = on_ranks(Means::threads, 3, [&](Communicator& communicator) {
    ReplicaContext context(&communicator);
    const auto i = static_cast<std::size_t>(communicator.rank());
    const auto count = begins[i + 1] - begins[i];
    if (count > 0) {
      all[i].add(rows.narrow(0, begins[i], count));
      scores[i].add(logits.narrow(0, begins[i], count));
    }
    all[i].reduce(context);
    scores[i].reduce(context);
  });
  REQUIRE(errors == std::vector<std::string>(3));
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(all[i].rows() == 12);
    CHECK(torch::allclose(all[i].mean(), whole.mean()));
    CHECK(torch::allclose(all[i].covariance(), whole.covariance()));
    CHECK(scores[i].rows() == 12);
    CHECK(scores[i].value() == doctest::Approx(score.value()));
  }
}

TEST_CASE("The class score is the number of classes at best and 1 at worst") {
  const auto sure = torch::eye(5, at::kDouble) * 1000; // one picture of each class, all certain
  ClassScore best, worst, between;
  best.add(sure.repeat({3, 1}));
  CHECK(best.value() == doctest::Approx(5));
  worst.add(torch::zeros({7, 5}));
  CHECK(worst.value() == doctest::Approx(1));
  between.add(sure.narrow(0, 0, 2));
  CHECK(between.value() == doctest::Approx(2)); // two of five classes
  CHECK_THROWS_AS(ClassScore().value(), std::runtime_error);
}

} // namespace troupe::learner
