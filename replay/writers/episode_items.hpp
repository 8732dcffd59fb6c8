#pragma once

#include <cstdint>

#include "replay/writers/writer.hpp"

namespace troupe::replay {

/// What happens to an episode of more than EpisodeOptions::max_rows rows.
enum class LongEpisode : std::uint8_t {
  refuse, // append_step() throws std::length_error and changes nothing; abandon() ends the episode
  cut,    // every max_rows rows are an item
};

struct EpisodeOptions {
  std::int64_t max_rows = 1001; // of an item: the first time step and those after it
  LongEpisode too_long = LongEpisode::refuse;
  int chunk_rows = 0; // as in WriterOptions
};

/// A writer whose items are the whole episodes of one environment. Throws std::invalid_argument as
/// Writer does, and if max_rows is out of range.
Writer episode_writer(const Signature& signature, std::uint64_t writer_id,
                      const EpisodeOptions& options, const ItemPriority& priority = {});

} // namespace troupe::replay
