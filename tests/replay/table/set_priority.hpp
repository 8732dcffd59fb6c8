#pragma once

#include "replay/table/table.hpp"

namespace troupe::replay {

/// Sets the priority of one item. Returns false if the table no longer has it.
inline bool set_priority(Table& table, std::uint64_t key, double priority) {
  table.update_priorities({&key, 1}, {&priority, 1});
  return table.contains(key);
}

} // namespace troupe::replay
