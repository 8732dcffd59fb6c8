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
/// score. A new member takes 1/n of the ids, evenly from all others; the ids of a removed member
/// are divided among the others; no other id moves. The result is the same in every process and on
/// every machine.

/// Returns the 64-bit XXH3 of a name.
inline std::uint64_t member_hash(std::string_view name) {
  return checksum_of(std::as_bytes(std::span(name)));
}

constexpr std::uint64_t rendezvous_score(std::uint64_t member, std::uint64_t id) {
  return env::mix_bits(env::mix_bits(member) + env::kSplitMixStep * (id + 1));
}

/// Returns the index of the member to which an id belongs, among the members for which may(index)
/// is true; empty if there is none. `members` are hashes of different names, in any order. Takes
/// O(n), about 2 ns per member.
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
