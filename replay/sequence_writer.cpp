#include "replay/sequence_writer.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "replay/writer_state.hpp"

namespace troupe::replay {

namespace {

constexpr std::int64_t kMostRows = std::int64_t{1} << 24;

void check_range(const char* field, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most)
    throw std::invalid_argument("replay sequences: " + std::string(field) + " is "
                                + std::to_string(value) + " but must be " + std::to_string(least)
                                + " to " + std::to_string(most));
}

const SequenceOptions& checked(const SequenceOptions& options) {
  check(options);
  return options;
}

} // namespace

void check(const SequenceOptions& options) {
  check_range("length", options.length, 1, kMostRows);
  check_range("period", options.period, 1, kMostRows);
  check_range("burn_in (less than the length)", options.burn_in, 0, options.length - 1);
}

std::optional<Window> cut_sequence(const SequenceOptions& options, std::int64_t rows) {
  if (options.end == EpisodeEnd::drop)
    return {};
  std::int64_t first = 0;
  if (rows >= options.length) {
    const std::int64_t whole = (rows - options.length) / options.period * options.period;
    first = whole + options.period;
    if (whole + options.length == rows || first >= rows)
      return {};
  }
  if (options.end == EpisodeEnd::shift)
    first = std::max<std::int64_t>(0, rows - options.length);
  if (rows - first <= options.burn_in)
    return {};
  return Window{first, rows - first, static_cast<std::uint32_t>(options.burn_in)};
}

void append_zeros(Writer& writer, std::int64_t count) {
  for (; count > 0; --count) {
    for (std::size_t column = 0; column < writer.layout().columns.size(); ++column)
      std::ranges::fill(writer.next(column), std::byte{0});
    writer.append();
  }
}

SequenceWriter::SequenceWriter(const Signature& signature, std::uint64_t writer_id,
                               const SequenceOptions& options, ItemPriority priority)
    : options_(checked(options)),
      priority_(std::move(priority)),
      writer_(signature, writer_id, {.chunk_rows = options.chunk_rows, .reach = options.length}) {}

/// Of the newest `count` rows.
void SequenceWriter::add_item(std::int64_t count) {
  const Window window{writer_.rows() - count, count, static_cast<std::uint32_t>(options_.burn_in)};
  writer_.add_item(window.first, window.count, window.history, nullptr,
                   priority_ ? priority_(writer_, window) : 1);
}

void SequenceWriter::append(bool last) {
  writer_.append(
      static_cast<std::uint8_t>((rows_ == 0 ? Chunk::kFirst : 0) | (last ? Chunk::kLast : 0)));
  const std::int64_t rows = ++rows_;
  if (last)
    rows_ = 0;
  if (rows >= options_.length && (rows - options_.length) % options_.period == 0)
    add_item(options_.length);
  if (!last)
    return;
  const std::optional<Window> cut = cut_sequence(options_, rows);
  if (!cut)
    return;
  const bool padded = options_.end == EpisodeEnd::pad;
  if (padded)
    append_zeros(writer_, options_.length - cut->count);
  add_item(padded ? options_.length : cut->count);
}

void SequenceWriter::save_state(std::vector<std::byte>& out) const {
  save_episode(out, rows_, writer_);
}

std::span<const std::byte> SequenceWriter::load_state(std::span<const std::byte> in) {
  rows_ = load_episode(in, writer_, options_.length);
  return in;
}

} // namespace troupe::replay
