#pragma once

#include "replay/service/shard_client.hpp"
#include "replay/table/table.hpp"

namespace troupe::replay {

inline Deadline in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

/// Far enough for anything that works, also on a busy machine.
inline Deadline soon() {
  return in(std::chrono::seconds(60));
}

/// A table that lets everything in and out at once.
inline constexpr TableConfig kFree{.max_items = 100000,
                                   .limiter = {.min_items = 1, .error_buffer = 1e6}};

} // namespace troupe::replay
