#pragma once

#include <cstdint>

#include "env/split_mix.hpp"

namespace troupe::env {

/// A counter-based stream of random numbers: the k-th draw is a hash of (seed, k). Its whole state
/// is 16 bytes, and its numbers do not depend on the standard library. One thread at a time.
class Random {
public:
  explicit Random(std::uint64_t seed = 0) : key_(mix_bits(seed ^ 0x5851f42d4c957f2dULL)) {}

  std::uint64_t bits() { return mix_bits(key_ + kSplitMixStep * ++draws_); }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; } // [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal(); // mean 0, standard deviation 1; uses two draws

private:
  std::uint64_t key_;
  std::uint64_t draws_ = 0;
};

} // namespace troupe::env
