#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "replay/writer.hpp"

namespace troupe::replay {

/// What becomes of the sequence that the end of an episode cuts off. A sequence of nothing but
/// burn-in is left out in any case.
enum class EpisodeEnd : std::uint8_t {
  pad,     // it is filled up with rows of zeros, which are stored as any others
  shorten, // it is an item of fewer rows
  shift,   // it begins earlier, so that it ends with the episode (a shorter episode: shorten)
  drop,
};

/// Sequences begin at rows 0, period, 2 * period, … of an episode and never cross into another one
/// (R2D2, Kapturowski et al. 2019, has length 80 and period 40). With period <= length - burn_in
/// and an end that does not drop every row but an episode's first burn_in is trained on.
struct SequenceOptions {
  std::int64_t length = 80; // rows of an item, burn-in included
  std::int64_t period = 40; // rows from the beginning of one to that of the next
  std::int64_t burn_in = 0; // the first rows of each (Item::history): for a state, not a loss
  EpisodeEnd end = EpisodeEnd::pad;
  int chunk_rows = 0; // as WriterOptions'
};

/// Throws std::invalid_argument naming the field, its value and the rule.
void check(const SequenceOptions& options);

/// The sequence that the end of an episode of `rows` rows cuts off: its first row of the episode
/// and how many of the episode's it has. Empty where the whole ones have every row.
std::optional<Window> cut_sequence(const SequenceOptions& options, std::int64_t rows);

/// Appends `count` rows of zeros.
void append_zeros(Writer& writer, std::int64_t count);

/// Makes sequences of the time steps of one environment. As a Writer otherwise.
///
///   for (…) { render(writer.next(0)); act(writer.next(1)); writer.append(last); }
class SequenceWriter {
public:
  /// `priority`: of each item; 1 without it. Throws std::invalid_argument as Writer and check() do.
  SequenceWriter(const Signature& signature, std::uint64_t writer_id,
                 const SequenceOptions& options, ItemPriority priority = {});

  std::span<std::byte> next(std::size_t column) { return writer_.next(column); }

  /// The row of next() is a step now; `last` of its episode. Throws what the priority function
  /// throws, and std::invalid_argument on what it gives that is no priority: the step is there then
  /// and the item is not.
  void append(bool last);

  /// The open episode ends here without a last step (its environment failed): no sequence is cut.
  void abandon() { rows_ = 0; }

  const Writer& rows() const { return writer_; } // at() of the newest `length` ones
  std::int64_t pending_items() const { return writer_.pending_items(); }
  InsertionPtr take() { return writer_.take(); }

  /// As Writer's, with the open episode.
  void save_state(std::vector<std::byte>& out) const;
  std::span<const std::byte> load_state(std::span<const std::byte> in);

private:
  void add_item(std::int64_t count);

  SequenceOptions options_;
  ItemPriority priority_;
  Writer writer_;
  std::int64_t rows_ = 0; // of the open episode
};

} // namespace troupe::replay
