#pragma once

#include <cstdint>
#include <span>

#include "replay/chunks/spec.hpp"
#include "replay/writers/writer.hpp"

namespace troupe::replay {

// clang-format off
/// Returns a writer of the n-step transitions or sequences of one environment (see TransitionSpec).
/// The caller writes vectors into next(kVectors + i) together with the frame, and the extras of a
/// step into next(layout().place(kExtras) + i) before append_step(). `chunk_rows` is as in
/// WriterOptions. Throws std::invalid_argument if the spec or chunk_rows is out of range.
///
///   render(writer.next(kFrame)); begin_episode(writer);
///   for (;;) {
///     …; render(writer.next(kFrame));
///     append_step(writer, action, reward, discount, last);
///   }
// clang-format on
Writer transition_writer(const TransitionSpec& spec, std::uint64_t writer_id, int chunk_rows = 0,
                         const ItemPriority& priority = {});

/// Sets the extras of the next row to zeros.
void clear_extras(Writer& writer);

/// Begins an episode whose first frame is in writer.next(kFrame). If an episode is still open, it
/// ends without items for its last n_step - 1 steps.
void begin_episode(Writer& writer);

/// Appends the step of `action` [action_size], which led to the frame in writer.next(kFrame).
/// Throws std::logic_error if no episode is open, and std::invalid_argument if the action has
/// another size.
void append_step(Writer& writer, std::span<const float> action, float reward, float discount,
                 bool last);

} // namespace troupe::replay
