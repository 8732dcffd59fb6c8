#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "replay/insertion.hpp"

namespace troupe::replay {

/// The items of an insertion dealt out to several tables, which share its rows: item i goes into
/// insertion part_of_item[i] of those returned (null: it would have no items). Sent to one port in
/// order, the first brings the rows along and the others need none. All have the writer's sequence,
/// which each table counts for itself. Throws std::invalid_argument unless there is a part of
/// `parts` for each item.
std::vector<InsertionPtr> split(const Insertion& insertion,
                                std::span<const std::size_t> part_of_item, std::size_t parts);

} // namespace troupe::replay
