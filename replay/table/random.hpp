#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "env/split_mix.hpp"

namespace troupe::replay {

/// xoshiro256++ (Blackman and Vigna), the random generator of a table. Checkpoints contain its
/// state.
struct Random {
  std::array<std::uint64_t, 4> state{};

  explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : state)
      word = env::split_mix(seed);
  }

  std::uint64_t next() {
    auto& s = state;
    const std::uint64_t result = std::rotl(s[0] + s[3], 23) + s[0];
    const std::uint64_t t = s[1] << 17U;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = std::rotl(s[3], 45);
    return result;
  }

  /// Returns a number from 0 to bound - 1 as the high word of a product (Lemire). Its bias is below
  /// bound / 2^64.
  std::uint64_t below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(static_cast<Wide>(next()) * bound >> 64U);
  }

  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; } // [0, 1)
};

} // namespace troupe::replay
