#include "replay/table/importance.hpp"

#include <cmath>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "replay/table/selector.hpp"

namespace troupe::replay {
namespace {

// Three shards of very different sizes and priorities, a function of the items, and batches of 7
// rows, which cannot be split evenly. Weighted with exponent 1, the mean over the batches must be
// the mean over all items.
TEST_CASE("Weighted means of batches from several shards are unbiased") {
  std::mt19937_64 random(1);
  Random draws(2);
  const std::size_t sizes[] = {5, 200, 31};
  std::vector<std::unique_ptr<Selector>> shards;
  std::vector<std::vector<double>> value;
  double truth = 0;
  for (const std::size_t size : sizes) {
    shards.push_back(make_selector({.kind = SelectorKind::prioritized, .exponent = 0.7}));
    value.emplace_back();
    for (std::uint32_t i = 0; i < size; ++i) {
      shards.back()->insert(i, 0.1 + static_cast<double>(random() % 100));
      value.back().push_back(static_cast<double>(random() % 1000)
                             + 100.0 * static_cast<double>(size));
      truth += value.back().back() / (5 + 200 + 31);
    }
  }
  constexpr int kBatches = 200'000;
  double sum = 0;
  double squares = 0;
  double plain = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    std::vector<double> probability;
    std::vector<double> f;
    std::vector<ShardRows> parts;
    for (std::size_t s = 0; s < 3; ++s) {
      parts.push_back(
          {s == static_cast<std::size_t>(batch % 3) ? 3 : 2, static_cast<std::int64_t>(sizes[s])});
      for (std::int64_t i = 0; i < parts.back().rows; ++i) {
        const Selected one = shards[s]->select(draws);
        probability.push_back(one.probability);
        f.push_back(value[s][one.place]);
      }
    }
    std::vector<float> weight(7);
    importance_weights(probability, parts, 1, weight);
    double mean = 0;
    for (std::size_t i = 0; i < 7; ++i) {
      mean += static_cast<double>(weight[i]) * f[i] / 7;
      plain += f[i] / 7 / kBatches;
    }
    sum += mean / kBatches;
    squares += mean * mean / kBatches;
  }
  const double error = std::sqrt((squares - sum * sum) / kBatches); // of the mean
  CHECK_LT(std::abs(sum - truth), 5 * error);
  CHECK_LT(error, 0.01 * truth);
  CHECK_GT(std::abs(plain - truth), 20 * error); // without weights the bias is visible
}

TEST_CASE("Weights are 1 for one uniform shard and for an exponent of 0") {
  const std::vector<double> uniform(8, 1.0 / 50);
  const ShardRows part{.rows = 8, .table_items = 50};
  std::vector<float> weight(8);
  importance_weights(uniform, {&part, 1}, 0.6, weight);
  for (const float w : weight)
    CHECK_EQ(w, doctest::Approx(1));
  const std::vector<double> skewed = {0.5, 0.1, 0.01, 0.2, 0.3, 0.001, 0.4, 0.02};
  importance_weights(skewed, {&part, 1}, 0, weight);
  for (const float w : weight)
    CHECK_EQ(w, 1.0F);
  importance_weights(skewed, {&part, 1}, 0.5, weight);
  for (std::size_t i = 0; i < 8; ++i)
    CHECK_EQ(weight[i], doctest::Approx(std::sqrt(1 / (50 * skewed[i]))));
  normalise_by_largest(weight);
  CHECK_EQ(weight[5], 1.0F);
  CHECK_EQ(weight[0], doctest::Approx(std::sqrt(0.001 / 0.5)));
}

TEST_CASE("The exponent grows linearly to 1 or stays constant") {
  CHECK_EQ(annealed_exponent(0.4, 100, 0), doctest::Approx(0.4));
  CHECK_EQ(annealed_exponent(0.4, 100, 50), doctest::Approx(0.7));
  CHECK_EQ(annealed_exponent(0.4, 100, 100), doctest::Approx(1));
  CHECK_EQ(annealed_exponent(0.4, 100, 100000), doctest::Approx(1));
  CHECK_EQ(annealed_exponent(0.4, 0, 12345), doctest::Approx(0.4));
}

TEST_CASE("Weights refuse mismatched sizes and probabilities of 0") {
  const std::vector<double> two = {0.5, 0};
  std::vector<float> weight(2);
  const ShardRows one{.rows = 1, .table_items = 4};
  const ShardRows both{.rows = 2, .table_items = 4};
  CHECK_THROWS_WITH_AS(importance_weights(two, {&one, 1}, 1, weight), doctest::Contains("1 rows"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(importance_weights(two, {&both, 1}, 1, weight),
                       doctest::Contains("row 1 is 0"), std::invalid_argument);
}

} // namespace
} // namespace troupe::replay
