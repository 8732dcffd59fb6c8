#pragma once

#include <cstdint>

namespace troupe::env {

/// A counter-based stream of random numbers: the k-th draw is a hash of (seed, k), so its whole
/// state is 16 bytes and its numbers do not depend on the standard library. One thread at a time.
class Random {
public:
  explicit Random(std::uint64_t seed = 0) : key_(mix(seed ^ 0x5851f42d4c957f2dULL)) {}

  std::uint64_t bits() { return mix(key_ + 0x9e3779b97f4a7c15ULL * ++draws_); }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; } // [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal(); // mean 0, standard deviation 1; two draws each

private:
  static std::uint64_t mix(std::uint64_t z) { // the finaliser of SplitMix64
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  std::uint64_t key_;
  std::uint64_t draws_ = 0;
};

} // namespace troupe::env
