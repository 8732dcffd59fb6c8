#pragma once

#include <cstdint>
#include <span>

namespace troupe::replay {

/// Rows of a batch that came from one shard, one after another.
struct ShardRows {
  std::int64_t rows = 0;
  std::int64_t table_items = 0; // that the shard held
};

/// Importance weights of a batch that several shards have sampled each a part of. An item of shard
/// s is drawn with frequency share_s * probability, share_s = rows_s / rows, where uniformly it
/// were 1 / N, N the items of all shards in the batch:
///   weight = (1 / (N * share_s * probability)) ^ exponent
/// With exponent 1 the mean of weight * f over batches is the mean of f over all items, whatever
/// the shards' sizes and priorities. `probability` [rows] is each choice's in its own shard, in the
/// order of `parts`, whose rows sum to it; `weight` [rows]. Throws std::invalid_argument where they
/// do not fit or a probability is not above 0.
void importance_weights(std::span<const double> probability, std::span<const ShardRows> parts,
                        double exponent, std::span<float> weight);

/// Divides by the largest, so that steps only become smaller (Schaul et al. 2016).
void normalise_by_largest(std::span<float> weight);

/// Grows linearly from `start` to 1 over `updates`; stays at `start` where that is 0.
double annealed_exponent(double start, std::int64_t updates, std::int64_t update);

} // namespace troupe::replay
