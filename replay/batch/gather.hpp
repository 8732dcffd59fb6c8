#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/batch/batch.hpp"
#include "replay/chunks/insertion.hpp"
#include "replay/chunks/spec.hpp"
#include "replay/chunks/window_reader.hpp"

namespace troupe::replay {

/// Throws std::invalid_argument if a buffer is too small for rows [first_row, first_row + count).
void check(const TransitionSpec& spec, const BatchView& batch, std::int64_t first_row,
           std::int64_t count);

struct NStep {
  float reward = 0;   // sum_{k<m} discount^k (prod_{j<k} d_j) r_k
  float discount = 0; // prod_{k<m} discount * d_k
};

/// The return of `steps` consecutive float rewards and discounts, summed in double precision.
NStep n_step(const TransitionSpec& spec, std::uint32_t steps, const std::byte* reward,
             const std::byte* discount);

/// The shape of a transition of more steps than `stack`: the frames of both observations, one
/// action, and the steps' rewards and discounts.
ItemShape transition_shape(std::uint32_t history, std::uint32_t steps, std::uint32_t stack);

/// Writes the optional columns of BatchView (priority and the like) that have a buffer.
void put_choice(const BatchView& batch, std::size_t row, const Item& item);

/// True if a transition of this spec may have this window.
bool is_transition(const TransitionSpec& spec, const Item& item);

/// Writes `items` to rows [first_row, first_row + items.size()) of the batch: stacked observations,
/// action, n-step reward and discount, key. Copies every frame once. Any thread; allocates only for
/// encoded chunks, and with a reused `reader` not even then. Throws as check() does, and on an item
/// that is no transition.
void gather(const TransitionSpec& spec, std::span<const Item> items, const BatchView& batch,
            std::int64_t first_row, WindowReader* reader = nullptr);

} // namespace troupe::replay
