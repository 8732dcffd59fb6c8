#pragma once

#include <cstdint>
#include <span>

namespace troupe::replay {

/// Consecutive rows of a batch that came from one shard.
struct ShardRows {
  std::int64_t rows = 0;
  std::int64_t table_items = 0; // items in the shard when it was sampled
};

/// Computes the importance weights of a batch sampled from several shards. An item of shard s is
/// drawn with frequency share_s * probability, where share_s = rows_s / rows. Uniform sampling over
/// all N items of these shards would draw it with frequency 1 / N:
///   weight = (1 / (N * share_s * probability)) ^ exponent
/// With exponent 1, the expectation of weight * f equals the mean of f over all items, whatever the
/// sizes and priorities of the shards. `probability` [rows] is the probability of each row within
/// its shard, in the order of `parts`; `weight` is [rows]. Throws std::invalid_argument if the
/// sizes differ or a probability is not above 0.
void importance_weights(std::span<const double> probability, std::span<const ShardRows> parts,
                        double exponent, std::span<float> weight);

/// Divides all weights by the largest, so that they only ever scale updates down (Schaul et al.
/// 2016).
void normalise_by_largest(std::span<float> weight);

/// Returns the exponent at `update`: it grows linearly from `start` to 1 over `updates` updates, or
/// stays at `start` if `updates` is 0.
double annealed_exponent(double start, std::int64_t updates, std::int64_t update);

} // namespace troupe::replay
