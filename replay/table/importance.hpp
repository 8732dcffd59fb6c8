#pragma once

#include <cstdint>
#include <span>

namespace troupe::replay {

/// Consecutive rows of a batch that came from one shard.
struct ShardRows {
  std::int64_t rows = 0;
  std::int64_t table_items = 0; // in the shard at that time
};

/// Importance weights of a batch that consists of samples from several shards. An item of shard s
/// is drawn with frequency share_s * probability, share_s = rows_s / rows; uniform sampling over
/// all N items of these shards would draw it with frequency 1 / N:
///   weight = (1 / (N * share_s * probability)) ^ exponent
/// With exponent 1, the mean of weight * f over batches is the mean of f over all items, whatever
/// the shards' sizes and priorities. `probability` [rows]: of each choice within its shard, in the
/// order of `parts`; `weight` [rows]. Throws std::invalid_argument if the sizes differ or a
/// probability is not above 0.
void importance_weights(std::span<const double> probability, std::span<const ShardRows> parts,
                        double exponent, std::span<float> weight);

/// Divides by the largest weight, so that update steps only shrink (Schaul et al. 2016).
void normalise_by_largest(std::span<float> weight);

/// Grows linearly from `start` to 1 over `updates`; stays at `start` if `updates` is 0.
double annealed_exponent(double start, std::int64_t updates, std::int64_t update);

} // namespace troupe::replay
