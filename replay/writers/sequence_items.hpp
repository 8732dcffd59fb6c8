#pragma once

#include <cstdint>
#include <optional>

#include "replay/writers/writer.hpp"

namespace troupe::replay {

/// Says what happens to a sequence that is cut off by the end of an episode. A sequence that would
/// consist of burn-in only is always left out.
enum class EpisodeEnd : std::uint8_t {
  pad,     // it is filled up with rows of zeros, which are stored like any other rows
  shorten, // it has fewer rows
  shift,   // it begins earlier and ends with the episode; shortened if the episode is too short
  drop,
};

/// Sequences begin at rows 0, period, 2 * period, … of an episode and never cross into another one
/// (Kapturowski et al. 2019 use length 80 and period 40). If period <= length - burn_in and `end`
/// is not `drop`, every row except the first burn_in rows of an episode is trained on.
struct SequenceOptions {
  std::int64_t length = 80; // rows of an item, including burn-in
  std::int64_t period = 40; // rows from the beginning of one sequence to the next
  /// Leading rows (Item::history) that warm up a recurrent state and have no loss.
  std::int64_t burn_in = 0;
  EpisodeEnd end = EpisodeEnd::pad;
  int chunk_rows = 0; // as in WriterOptions
};

/// Throws std::invalid_argument naming the field, its value and the rule.
void check(const SequenceOptions& options);

/// Returns the sequence that is cut off by the end of an episode of `rows` rows: its first row in
/// the episode and the number of rows that it has there. Empty if complete sequences contain every
/// row.
std::optional<Window> cut_sequence(const SequenceOptions& options, std::int64_t rows);

/// Returns a writer of the sequences of one environment. Throws std::invalid_argument as Writer and
/// check() do.
Writer sequence_writer(const Signature& signature, std::uint64_t writer_id,
                       const SequenceOptions& options, const ItemPriority& priority = {});

} // namespace troupe::replay
