#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/writer.hpp"

namespace troupe::replay {

/// What becomes of an episode of more rows than it may have.
enum class LongEpisode : std::uint8_t {
  refuse, // append() throws
  cut,    // its first max_rows are an item, what follows is another one
};

struct EpisodeOptions {
  std::int64_t max_rows = 1001; // of an item: the first time step and those after it
  LongEpisode too_long = LongEpisode::refuse;
  int chunk_rows = 0; // as WriterOptions'
};

/// Makes an item of each whole episode of one environment. As a Writer otherwise.
///
///   for (…) { render(writer.next(0)); act(writer.next(1)); writer.append(last); }
class EpisodeWriter {
public:
  /// `priority`: of each item; 1 without it. Throws std::invalid_argument as Writer does, and on
  /// max_rows out of range.
  EpisodeWriter(const Signature& signature, std::uint64_t writer_id, const EpisodeOptions& options,
                ItemPriority priority = {});

  std::span<std::byte> next(std::size_t column) { return writer_.next(column); }

  /// The row of next() is a step now; `last` of its episode. Throws std::length_error on one too
  /// many (LongEpisode::refuse): nothing has changed then, and abandon() gets on. Throws what the
  /// priority function throws, and std::invalid_argument on what it gives that is no priority: the
  /// step is there then and the item is not.
  void append(bool last);

  /// The open episode is no item: its environment failed, or it is too long.
  void abandon();

  const Writer& rows() const { return writer_; } // at() of the newest max_rows ones
  std::int64_t pending_items() const { return writer_.pending_items(); }
  InsertionPtr take() { return writer_.take(); }

  /// As Writer's, with the open episode.
  void save_state(std::vector<std::byte>& out) const;
  std::span<const std::byte> load_state(std::span<const std::byte> in);

private:
  EpisodeOptions options_;
  ItemPriority priority_;
  Writer writer_;
  std::int64_t rows_ = 0; // of the open episode, since the last cut
  bool begun_ = false;    // there is one, whatever was cut off it
};

} // namespace troupe::replay
