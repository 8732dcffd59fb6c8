#pragma once

#include <cstdint>

namespace troupe::env {

constexpr std::uint64_t kSplitMixStep = 0x9e3779b97f4a7c15ULL;

/// The finaliser of SplitMix64 (Steele, Lea and Flood): every bit of the result depends on every
/// bit of `z`.
constexpr std::uint64_t mix_bits(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// The next number of SplitMix64, whose whole state is one integer.
constexpr std::uint64_t split_mix(std::uint64_t& state) {
  return mix_bits(state += kSplitMixStep);
}

} // namespace troupe::env
