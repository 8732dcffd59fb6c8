#include "replay/service/share_rows.hpp"

#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "replay/table/importance.hpp"
#include "replay/table/selector.hpp"

namespace troupe::replay {
namespace {

TEST_CASE("Every shard gets its share of a batch to within one row, and exactly on average") {
  Random random(1);
  const std::array<double, 5> weights = {3, 0, 0.001, 40, 7.5};
  constexpr int kBatches = 50'000;
  std::array<double, 5> sum{};
  for (int batch = 0; batch < kBatches; ++batch) {
    std::array<std::int64_t, 5> rows{};
    REQUIRE(share_rows(weights, 16, random.unit(), rows));
    REQUIRE_EQ(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), 16);
    for (std::size_t s = 0; s < rows.size(); ++s) {
      REQUIRE_LT(std::abs(static_cast<double>(rows[s]) - 16 * weights[s] / 50.501), 1);
      sum[s] += static_cast<double>(rows[s]) / kBatches;
    }
  }
  CHECK_EQ(sum[1], 0);
  for (std::size_t s = 0; s < sum.size(); ++s) // within 5 sigma of a Bernoulli variable
    CHECK_LT(std::abs(sum[s] - 16 * weights[s] / 50.501), 5 * 0.5 / std::sqrt(kBatches));
}

TEST_CASE("The ends of the interval assign all rows, and weights of zero assign none") {
  std::array<std::int64_t, 2> rows{};
  for (const double start : {0.0, std::nextafter(1.0, 0.0)}) {
    REQUIRE(share_rows(std::array{1.0, 1e-300}, 7, start, rows));
    CHECK_EQ(rows[0], 7);
    CHECK_EQ(rows[1], 0);
    REQUIRE(share_rows(std::array{0.0, 1e12}, 7, start, rows));
    CHECK_EQ(rows[0], 0);
    CHECK_EQ(rows[1], 7);
  }
  CHECK_FALSE(share_rows(std::array{0.0, 0.0}, 7, 0.5, rows));
}

// Three shards of very different sizes and priorities, and a function of the items. The weights
// that the shards reported are outdated, because some have changed since. With weights as for one
// table, the mean over the batches must still be the mean over all items, although most batches
// have no row of the smallest shard.
TEST_CASE("Batches shared out by outdated weights stay as unbiased as those of one table") {
  std::mt19937_64 random(1);
  Random draws(2);
  const std::array<std::size_t, 3> sizes = {5, 200, 31};
  constexpr double kItems = 5 + 200 + 31;
  std::vector<std::unique_ptr<Selector>> shards;
  std::vector<std::vector<double>> value;
  std::array<double, 3> told{};
  double truth = 0;
  for (std::size_t s = 0; s < 3; ++s) {
    shards.push_back(make_selector({.kind = SelectorKind::prioritized, .exponent = 0.7}));
    value.emplace_back();
    for (std::uint32_t i = 0; i < sizes[s]; ++i) {
      shards[s]->insert(i, 0.1 + static_cast<double>(random() % 100));
      value[s].push_back(static_cast<double>(random() % 1000)
                         + 100.0 * static_cast<double>(sizes[s]));
      truth += value[s].back() / kItems;
    }
    told[s] = shards[s]->total();
    shards[s]->update(0, 500);
  }
  const double all = told[0] + told[1] + told[2];
  constexpr int kBatches = 200'000;
  double sum = 0;
  double squares = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    std::array<std::int64_t, 3> rows{};
    REQUIRE(share_rows(told, 7, draws.unit(), rows));
    std::vector<double> probability;
    std::vector<double> f;
    for (std::size_t s = 0; s < 3; ++s)
      for (std::int64_t i = 0; i < rows[s]; ++i) {
        const Selected one = shards[s]->select(draws);
        probability.push_back(one.probability * told[s] / all);
        f.push_back(value[s][one.place]);
      }
    std::vector<float> weight(7);
    const ShardRows part{.rows = 7, .table_items = 5 + 200 + 31};
    importance_weights(probability, {&part, 1}, 1, weight);
    double mean = 0;
    for (std::size_t i = 0; i < 7; ++i)
      mean += static_cast<double>(weight[i]) * f[i] / 7;
    sum += mean / kBatches;
    squares += mean * mean / kBatches;
  }
  const double error = std::sqrt((squares - sum * sum) / kBatches); // of the mean
  CHECK_LT(std::abs(sum - truth), 5 * error);
  CHECK_LT(error, 0.01 * truth);
}

} // namespace
} // namespace troupe::replay
