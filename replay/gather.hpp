#pragma once

#include <cstdint>
#include <span>

#include "replay/batch.hpp"
#include "replay/insertion.hpp"
#include "replay/spec.hpp"

namespace troupe::replay {

/// Throws std::invalid_argument when one of the view's buffers is too small for rows
/// [first_row, first_row + count).
void check(const TransitionSpec& spec, const BatchView& batch, std::int64_t first_row,
           std::int64_t count);

/// Writes `items` to rows [first_row, first_row + items.size()) of the batch: stacked observations,
/// action, n-step reward and discount, key. Any thread; no allocation. Throws as check() does.
void gather(const TransitionSpec& spec, std::span<const Item> items, const BatchView& batch,
            std::int64_t first_row);

} // namespace troupe::replay
