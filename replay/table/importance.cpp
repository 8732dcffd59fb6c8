#include "replay/table/importance.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace troupe::replay {

void importance_weights(std::span<const double> probability, std::span<const ShardRows> parts,
                        double exponent, std::span<float> weight) {
  std::int64_t rows = 0;
  std::int64_t items = 0;
  for (const ShardRows& part : parts) {
    rows += part.rows;
    items += part.table_items;
  }
  if (rows != std::ssize(probability) || rows != std::ssize(weight))
    throw std::invalid_argument("importance weights: there are " + std::to_string(rows) + " rows, "
                                + std::to_string(probability.size()) + " probabilities and "
                                + std::to_string(weight.size())
                                + " weights; their numbers must be equal");
  std::size_t row = 0;
  for (const ShardRows& part : parts) {
    const double share = static_cast<double>(part.rows) / static_cast<double>(rows);
    for (std::int64_t i = 0; i < part.rows; ++i, ++row) {
      if (!(probability[row] > 0))
        throw std::invalid_argument("importance weights: the probability of row "
                                    + std::to_string(row) + " is "
                                    + std::to_string(probability[row])
                                    + " but must be above 0, as it is for every sampled item");
      const double frequency = static_cast<double>(items) * share * probability[row];
      weight[row] = static_cast<float>(std::pow(frequency, -exponent));
    }
  }
}

void normalise_by_largest(std::span<float> weight) {
  const auto largest = std::max_element(weight.begin(), weight.end());
  if (largest == weight.end() || !(*largest > 0))
    return;
  const float scale = 1.0F / *largest;
  for (float& one : weight)
    one *= scale;
}

double annealed_exponent(double start, std::int64_t updates, std::int64_t update) {
  if (updates <= 0)
    return start;
  const double done = static_cast<double>(update) / static_cast<double>(updates);
  return start + (1 - start) * std::clamp(done, 0.0, 1.0);
}

} // namespace troupe::replay
