#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "env/split_mix.hpp"

namespace troupe::replay {

/// Rendezvous hashing (Thaler and Ravishankar 1998): an id belongs to the member with the greatest
/// score. A member that comes takes its 1/n of the ids from all others, one that goes leaves its
/// own to all others, and nothing else moves. The same in every process and on every machine.

/// Of a name: FNV-1a, 64 bits.
constexpr std::uint64_t member_hash(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

constexpr std::uint64_t rendezvous_score(std::uint64_t member, std::uint64_t id) {
  return env::mix_bits(env::mix_bits(member) + env::kSplitMixStep * (id + 1));
}

/// Which of `members` (hashes of different names, in any order) an id belongs to, of those for
/// which may(index); empty when there is none. O(n), some 2 ns each.
template <typename May>
std::optional<std::size_t> home_of(std::uint64_t id, std::span<const std::uint64_t> members,
                                   May may) {
  std::optional<std::size_t> home;
  std::uint64_t best = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::uint64_t score = rendezvous_score(members[i], id);
    if (may(i) && (!home || score > best)) {
      home = i;
      best = score;
    }
  }
  return home;
}

} // namespace troupe::replay
