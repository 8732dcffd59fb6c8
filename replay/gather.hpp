#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/batch.hpp"
#include "replay/insertion.hpp"
#include "replay/spec.hpp"
#include "replay/window_reader.hpp"

namespace troupe::replay {

/// Throws std::invalid_argument when one of the view's buffers is too small for rows
/// [first_row, first_row + count).
void check(const TransitionSpec& spec, const BatchView& batch, std::int64_t first_row,
           std::int64_t count);

struct NStep {
  float reward = 0;   // sum_{k<m} discount^k (prod_{j<k} d_j) r_k
  float discount = 0; // prod_{k<m} discount * d_k
};

/// The return of `steps` rewards and discounts (floats, one after another), summed in double
/// precision.
NStep n_step(const TransitionSpec& spec, std::uint32_t steps, const std::byte* reward,
             const std::byte* discount);

/// What a transition of more steps than `stack` shows of its window: the frames of both
/// observations, one action, and the steps' rewards and discounts.
ItemShape transition_shape(std::uint32_t history, std::uint32_t steps, std::uint32_t stack);

/// Writes what a row says of its choice (priority and the like), where the batch has room for it.
void put_choice(const BatchView& batch, std::size_t row, const Item& item);

/// The item is a window that this spec's transitions may have, whatever its columns hold.
bool is_transition(const TransitionSpec& spec, const Item& item);

/// Writes `items` to rows [first_row, first_row + items.size()) of the batch: stacked observations,
/// action, n-step reward and discount, key. Any thread; allocates for encoded chunks only, and
/// with a `reader` that is used again not even then. Throws as check() does,
/// and on an item that is no transition.
void gather(const TransitionSpec& spec, std::span<const Item> items, const BatchView& batch,
            std::int64_t first_row, WindowReader* reader = nullptr);

} // namespace troupe::replay
