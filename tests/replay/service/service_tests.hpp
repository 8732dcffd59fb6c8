#pragma once

#include "replay/service/shard_client.hpp"
#include "replay/table/table.hpp"

namespace troupe::replay {

inline Deadline in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

/// A deadline that is long enough on a busy machine, too.
inline Deadline soon() {
  return in(std::chrono::seconds(60));
}

/// A table that never makes an insertion or a sample wait.
inline constexpr TableConfig kFree{.max_items = 100000,
                                   .limiter = {.minimum_items = 1, .error_buffer = 1e6}};

} // namespace troupe::replay
