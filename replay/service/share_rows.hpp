#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

namespace troupe::replay {

/// Divides the `count` rows of a batch among several shards by systematic sampling: sets `rows`
/// [weights.size()] to the number of rows from each. Row j comes from the shard whose part of the
/// sum of the weights contains (start + j) / count, where `start` is in [0, 1). Every shard gets
/// its share to within one row and, with a new random start for each batch, exactly on average: a
/// row comes from shard s with probability weights[s] / sum. Returns false if the sum is 0.
inline bool share_rows(std::span<const double> weights, std::int64_t count, double start,
                       std::span<std::int64_t> rows) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!(total > 0))
    return false;
  double before = 0;
  std::int64_t given = 0;
  for (std::size_t s = 0; s < weights.size(); ++s) {
    before += weights[s];
    const double end = before < total
                           ? std::ceil(before / total * static_cast<double>(count) - start)
                           : static_cast<double>(count);
    rows[s] = std::clamp(static_cast<std::int64_t>(end), given, count) - given;
    given += rows[s];
  }
  return true;
}

} // namespace troupe::replay
