#include "replay/writers/sequence_items.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace troupe::replay {

namespace {

void check_range(const char* field, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most)
    throw std::invalid_argument("replay sequences: " + std::string(field) + " is "
                                + std::to_string(value) + " but must be " + std::to_string(least)
                                + " to " + std::to_string(most));
}

class SequenceItems final : public ItemPolicy {
public:
  explicit SequenceItems(const SequenceOptions& options) : options_(options) {}

  void after_row(Writer& writer, std::int64_t rows, bool last) override {
    if (rows >= options_.length && (rows - options_.length) % options_.period == 0)
      add_newest(writer, options_.length);
    const std::optional<Window> cut = last ? cut_sequence(options_, rows) : std::nullopt;
    if (!cut)
      return;
    const bool padded = options_.end == EpisodeEnd::pad;
    if (padded)
      writer.append_zeros(options_.length - cut->count);
    add_newest(writer, padded ? options_.length : cut->count);
  }

private:
  void add_newest(Writer& writer, std::int64_t count) {
    writer.add_item({writer.rows() - count, count, static_cast<std::uint32_t>(options_.burn_in)});
  }

  SequenceOptions options_;
};

} // namespace

void check(const SequenceOptions& options) {
  check_range("length", options.length, 1, kMostWindow);
  check_range("period", options.period, 1, kMostWindow);
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

Writer sequence_writer(const Signature& signature, std::uint64_t writer_id,
                       const SequenceOptions& options, const ItemPriority& priority) {
  check(options);
  return Writer(signature, writer_id,
                {.chunk_rows = options.chunk_rows, .reach = options.length, .priority = priority},
                std::make_unique<SequenceItems>(options));
}

} // namespace troupe::replay
