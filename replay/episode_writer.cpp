#include "replay/episode_writer.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "replay/writer_state.hpp"

namespace troupe::replay {

EpisodeWriter::EpisodeWriter(const Signature& signature, std::uint64_t writer_id,
                             const EpisodeOptions& options, ItemPriority priority)
    : options_(options),
      priority_(std::move(priority)),
      writer_(signature, writer_id, {.chunk_rows = options.chunk_rows, .reach = options.max_rows}) {
}

void EpisodeWriter::append(bool last) {
  if (rows_ == options_.max_rows)
    throw std::length_error("replay episodes: the episode has more rows than max_rows = "
                            + std::to_string(options_.max_rows)
                            + "; raise it, end the episode earlier, or have it cut");
  const bool cut = rows_ + 1 == options_.max_rows && options_.too_long == LongEpisode::cut;
  writer_.append(
      static_cast<std::uint8_t>((begun_ ? 0 : Chunk::kFirst) | (last ? Chunk::kLast : 0)));
  const Window window{writer_.rows() - (rows_ + 1), rows_ + 1, 0};
  begun_ = !last;
  rows_ = last || cut ? 0 : window.count;
  if (last || cut)
    writer_.add_item(window.first, window.count, window.history, nullptr,
                     priority_ ? priority_(writer_, window) : 1);
}

void EpisodeWriter::abandon() {
  rows_ = 0;
  begun_ = false;
}

void EpisodeWriter::save_state(std::vector<std::byte>& out) const {
  put(out, static_cast<std::uint8_t>(begun_));
  save_episode(out, rows_, writer_);
}

std::span<const std::byte> EpisodeWriter::load_state(std::span<const std::byte> in) {
  const bool begun = take_value<std::uint8_t>(in) != 0;
  const std::int64_t rows = load_episode(in, writer_, options_.max_rows);
  rows_ = rows;
  begun_ = begun;
  return in;
}

} // namespace troupe::replay
