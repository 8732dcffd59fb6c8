#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "env/split_mix.hpp"
#include "replay/storage/segment_file.hpp"

namespace troupe::replay {

/// Rendezvous hashing (Thaler and Ravishankar 1998): an id belongs to the member with the greatest
/// score. A new member takes its 1/n of the ids from all others, a removed one leaves its own to
/// all others, and no other id moves. The same in every process and on every machine.

/// XXH3 of a name, 64 bits.
inline std::uint64_t member_hash(std::string_view name) {
  return checksum_of(std::as_bytes(std::span(name)));
}

constexpr std::uint64_t rendezvous_score(std::uint64_t member, std::uint64_t id) {
  return env::mix_bits(env::mix_bits(member) + env::kSplitMixStep * (id + 1));
}

/// Which of `members` (hashes of different names, in any order) an id belongs to, among those with
/// may(index); empty: none. O(n), about 2 ns each.
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
