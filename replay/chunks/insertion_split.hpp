#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "replay/chunks/insertion.hpp"

namespace troupe::replay {

/// Divides the items of an insertion among several tables, which share its rows. Item i goes into
/// insertion part_of_item[i] of the result (null: no items). Only the first of these insertions
/// contains the rows, so they must be sent to one port in order. All have the writer's sequence
/// number, which each table checks independently. Throws std::invalid_argument unless each item has
/// a part below `parts`.
std::vector<InsertionPtr> split(const Insertion& insertion,
                                std::span<const std::size_t> part_of_item, std::size_t parts);

} // namespace troupe::replay
