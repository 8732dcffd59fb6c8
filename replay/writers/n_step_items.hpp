#pragma once

#include <cstdint>
#include <span>

#include "replay/chunks/spec.hpp"
#include "replay/writers/writer.hpp"

namespace troupe::replay {

// clang-format off
/// A writer of the n-step transitions or sequences of one environment (see TransitionSpec). The
/// caller writes the extras of a step into next(layout().place(kExtras) + i) before append_step(), and
/// vectors beside the frame into next(kVectors + i). `chunk_rows` as in
/// WriterOptions. Throws std::invalid_argument if the spec or chunk_rows is out of range.
///
///   render(writer.next(kFrame)); begin_episode(writer);
///   for (;;) { …; render(writer.next(kFrame)); append_step(writer, action, reward, discount, last); }
// clang-format on
Writer transition_writer(const TransitionSpec& spec, std::uint64_t writer_id, int chunk_rows = 0,
                         const ItemPriority& priority = {});

/// Writes zeros as the extras of the next row.
void clear_extras(Writer& writer);

/// writer.next(kFrame) contains the first frame of an episode. An open episode ends without items
/// for its last n_step - 1 steps.
void begin_episode(Writer& writer);

/// writer.next(kFrame) contains the frame after `action` [action_size]. Throws std::logic_error
/// outside an episode, std::invalid_argument on an action of another size.
void append_step(Writer& writer, std::span<const float> action, float reward, float discount,
                 bool last);

} // namespace troupe::replay
