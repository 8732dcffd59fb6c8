#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace troupe::replay {

/// Returns the entry for `id`, creating it if necessary, and sets its member `used` to `now`. If
/// there are already `most` entries, a new one replaces the least recently used.
template <typename Value>
Value& remember(std::unordered_map<std::uint64_t, Value>& known, std::uint64_t id, std::size_t most,
                std::uint64_t now) {
  if (known.size() >= most && !known.contains(id))
    known.erase(std::min_element(known.begin(), known.end(), [](const auto& a, const auto& b) {
      return a.second.used < b.second.used;
    }));
  Value& found = known[id];
  found.used = now;
  return found;
}

} // namespace troupe::replay
