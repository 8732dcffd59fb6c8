#pragma once

#include <cstdint>
#include <optional>

#include "replay/writers/writer.hpp"

namespace troupe::replay {

/// What happens to the sequence that the end of an episode cuts off. A sequence of burn-in alone is
/// always left out.
enum class EpisodeEnd : std::uint8_t {
  pad,     // it is filled up with rows of zeros, which are stored as any others
  shorten, // it has fewer rows
  shift,   // it begins earlier and ends with the episode (shorten, if the episode is too short)
  drop,
};

/// Sequences begin at rows 0, period, 2 * period, … of an episode and never cross into another one
/// (Kapturowski et al. 2019 use length 80 and period 40). With period <= length - burn_in,
/// and an end that does not drop, every row but an episode's first burn_in is trained on.
struct SequenceOptions {
  std::int64_t length = 80; // rows of an item, burn-in included
  std::int64_t period = 40; // rows from the beginning of a sequence to that of the next
  std::int64_t burn_in = 0; // leading rows (Item::history): for a recurrent state, without a loss
  EpisodeEnd end = EpisodeEnd::pad;
  int chunk_rows = 0; // as in WriterOptions
};

/// Throws std::invalid_argument naming the field, its value and the rule.
void check(const SequenceOptions& options);

/// The sequence that the end of an episode of `rows` rows cuts off: its first row within the
/// episode and how many rows of the episode it has. Empty if whole sequences contain every row.
std::optional<Window> cut_sequence(const SequenceOptions& options, std::int64_t rows);

/// A writer of sequences of one environment. Throws std::invalid_argument as Writer and check() do.
Writer sequence_writer(const Signature& signature, std::uint64_t writer_id,
                       const SequenceOptions& options, const ItemPriority& priority = {});

} // namespace troupe::replay
