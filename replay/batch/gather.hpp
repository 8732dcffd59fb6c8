#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "replay/batch/batch.hpp"
#include "replay/chunks/insertion.hpp"
#include "replay/chunks/signature.hpp"
#include "replay/chunks/spec.hpp"
#include "replay/chunks/window_reader.hpp"

namespace troupe::replay {

/// Throws std::invalid_argument if a buffer is too small for rows [first_row, first_row + count).
void check(const TransitionSpec& spec, const BatchView& batch, std::int64_t first_row,
           std::int64_t count);

/// Returns the shape of a transition with more steps than the stack. It shows the frames of both
/// observations, one action, the rewards and discounts of all steps, for vectors the newest row of
/// each observation, and one running return.
ItemShape transition_shape(const TransitionSpec& spec, std::uint32_t history, std::uint32_t steps);

/// Returns the lane of a relabelled transition, -1 for an original one; empty if the shape belongs
/// to neither.
std::optional<int> hindsight_lane(const TransitionSpec& spec, const ItemShape* shape);

/// Writes those optional columns of BatchView (priority to table_items) that have a buffer.
void put_choice(const BatchView& batch, std::size_t row, const Item& item);

/// True if `item` has the window and the shape of an item (transition or sequence) of this spec.
bool is_transition(const TransitionSpec& spec, const Item& item);

/// Writes a sequence to row `row` of the batch. `at(k, column)` returns a column of row k of the
/// window, whose first `history` rows only provide context.
template <class At>
void put_sequence(const TransitionSpec& spec, std::uint32_t history, const BatchView& batch,
                  std::size_t row, const At& at) {
  const auto steps = static_cast<std::size_t>(spec.sequence_steps);
  const auto stack = static_cast<std::int64_t>(spec.stack);
  const std::size_t vectors = spec.vectors.size();
  const std::size_t frame_bytes = spec.frame.bytes();
  const std::size_t action_bytes = static_cast<std::size_t>(spec.action_size) * sizeof(float);
  const auto copy = [&](std::byte* out, std::size_t step, std::size_t column, std::size_t bytes) {
    std::memcpy(out + (row * steps + step) * bytes,
                at(static_cast<std::uint32_t>(history + 1 + step), column), bytes);
  };
  std::byte* frames =
      batch.observation.data() + row * (steps + 1) * frame_bytes * static_cast<std::size_t>(stack);
  std::int64_t episode = 0; // first row of the current episode in the window
  for (std::uint32_t k = 0; k < history + 1 + steps; ++k) {
    const bool first = *at(k, kFirst + vectors) != std::byte{0};
    if (first)
      episode = k;
    if (k < history)
      continue;
    batch.first[row * (steps + 1) + k - history] = first ? 1 : 0;
    for (std::int64_t j = k + 1 - stack; j <= k; ++j, frames += frame_bytes)
      std::memcpy(frames, at(static_cast<std::uint32_t>(std::max(episode, j)), kFrame),
                  frame_bytes);
    for (std::size_t i = 0; i < vectors; ++i) {
      const std::size_t bytes = spec.vectors[i].bytes();
      std::memcpy(batch.vectors[i].data() + (row * (steps + 1) + k - history) * bytes,
                  at(k, kVectors + i), bytes);
    }
  }
  for (std::size_t step = 0; step < steps; ++step) {
    copy(std::as_writable_bytes(batch.action).data(), step, kAction + vectors, action_bytes);
    copy(std::as_writable_bytes(batch.reward).data(), step, kReward + vectors, sizeof(float));
    copy(std::as_writable_bytes(batch.discount).data(), step, kDiscount + vectors, sizeof(float));
    for (std::size_t i = 0; i < spec.extras.size(); ++i)
      copy(batch.extras[i].data(), step, kExtras + vectors + i, spec.extras[i].bytes());
  }
}

/// Writes a transition to row `row` of the batch. `at(k, column)` returns a column of row k of the
/// window, which has `rows` rows. `lane` is the lane of a relabelled transition, otherwise -1. The
/// return is summed in double precision, beginning with the first step.
template <class At>
void put_transition(const TransitionSpec& spec, const RowLayout& layout, std::uint32_t history,
                    std::uint32_t rows, int lane, const BatchView& batch, std::size_t row,
                    const At& at) {
  const std::size_t frame_bytes = layout.columns[kFrame].bytes;
  // Frames before the window are replaced by its first one.
  const auto stack_frames = [&](std::uint32_t newest, std::byte* out) {
    for (auto k = std::int64_t{newest} - spec.stack + 1; k <= newest; ++k, out += frame_bytes)
      std::memcpy(out, at(static_cast<std::uint32_t>(std::max<std::int64_t>(0, k)), kFrame),
                  frame_bytes);
  };
  const std::size_t observation = row * static_cast<std::size_t>(spec.stack) * frame_bytes;
  stack_frames(history, batch.observation.data() + observation);
  stack_frames(rows - 1, batch.next_observation.data() + observation);
  const std::size_t vectors = spec.vectors.size();
  for (std::size_t column = kVectors; column < kVectors + vectors; ++column) {
    const std::size_t bytes = layout.columns[column].bytes;
    const std::size_t i = column - kVectors;
    std::memcpy(batch.vectors[i].data() + row * bytes, at(history, column), bytes);
    std::memcpy(batch.next_vectors[i].data() + row * bytes, at(rows - 1, column), bytes);
  }
  const std::size_t action_bytes = layout.columns[kAction + vectors].bytes;
  std::memcpy(std::as_writable_bytes(batch.action).data() + row * action_bytes,
              at(history + 1, kAction + vectors), action_bytes);
  const HindsightColumns own = hindsight_columns(lane);
  double reward = 0;
  double discount = 1;
  for (std::uint32_t k = history + 1; k < rows; ++k) {
    float r = 0;
    float d = 0;
    std::memcpy(&r, at(k, own.reward + vectors), sizeof r);
    std::memcpy(&d, at(k, own.discount + vectors), sizeof d);
    reward += discount * static_cast<double>(r);
    discount *= spec.discount * static_cast<double>(d);
  }
  batch.reward[row] = static_cast<float>(reward);
  batch.discount[row] = static_cast<float>(discount);
  if (spec.running_return)
    std::memcpy(&batch.running_return[row], at(history + 1, kRunningReturn + vectors),
                sizeof(float));
  if (!spec.has_hindsight())
    return;
  const std::byte* goal = at(rows - 1, own.goal); // replaces the desired one in both observations
  const std::size_t place =
      observation + static_cast<std::size_t>(spec.hindsight.desired) * sizeof(float);
  std::memcpy(batch.observation.data() + place, goal, layout.columns[own.goal].bytes);
  std::memcpy(batch.next_observation.data() + place, goal, layout.columns[own.goal].bytes);
}

/// Writes `items` to rows [first_row, first_row + items.size()) of the batch: for transitions
/// stacked observations, action, n-step reward and discount, and key; for sequences the columns
/// that BatchView has for them. Copies every frame once. May be called on any thread. Allocates
/// only for encoded chunks, and with a reused `reader` not even then. Throws as check() does, and
/// std::invalid_argument on an item that does not match the spec.
void gather(const TransitionSpec& spec, std::span<const Item> items, const BatchView& batch,
            std::int64_t first_row, WindowReader* reader = nullptr);

} // namespace troupe::replay
