#include <iterator>
#include <stdexcept>

#include "replay/config_rule.hpp"
#include "replay/table.hpp"

namespace troupe::replay {

namespace {

constexpr std::int64_t kMaxItems = std::int64_t{1} << 31;
constexpr std::int64_t kMaxTimes = std::int64_t{1} << 31;

/// What a queue or a stack is made of.
void check_queue(const TableConfig& config, SelectorKind kind) {
  need(config.sampler.kind == kind, "sampler", selector_name(config.sampler.kind),
       kind == SelectorKind::fifo ? "fifo, the limiter being queue"
                                  : "lifo, the limiter being stack");
  need(config.remover.kind == kind, "remover", selector_name(config.remover.kind),
       kind == SelectorKind::fifo ? "fifo, the limiter being queue"
                                  : "lifo, the limiter being stack");
  need(config.max_times_sampled == 1, "max_times_sampled", config.max_times_sampled,
       "1, the limiter being queue or stack: each item is given once");
}

constexpr const char* kCompressions[] = {"none", "packed", "lz4", "zstd", "automatic"};

} // namespace

const char* compression_name(Compression compression) {
  const auto at = static_cast<std::size_t>(compression);
  return at < std::size(kCompressions) ? kCompressions[at] : "unknown";
}

Compression compression_named(const std::string& name) {
  for (std::size_t i = 0; i < std::size(kCompressions); ++i)
    if (name == kCompressions[i])
      return static_cast<Compression>(i);
  throw std::invalid_argument("replay.compression is \"" + name
                              + "\" but must be none, packed, lz4, zstd or automatic");
}

void check(const TableConfig& config) {
  need(config.max_items >= 1 && config.max_items <= kMaxItems, "max_items", config.max_items,
       "1 to 2^31");
  need(config.max_bytes >= 1, "max_bytes", config.max_bytes, "at least 1 byte");
  need(config.max_times_sampled >= 0 && config.max_times_sampled <= kMaxTimes, "max_times_sampled",
       config.max_times_sampled, "0 (no limit) to 2^31");
  need(config.compression <= Compression::automatic, "compression",
       static_cast<int>(config.compression), "none, packed, lz4, zstd or automatic");
  check(config.sampler, "replay.sampler");
  check(config.remover, "replay.remover");
  check(config.limiter, config.max_items);
  if (config.limiter.kind == LimiterKind::queue)
    check_queue(config, SelectorKind::fifo);
  else if (config.limiter.kind == LimiterKind::stack)
    check_queue(config, SelectorKind::lifo);
  else if (config.limiter.kind == LimiterKind::samples_per_insert && config.max_times_sampled > 0)
    need(config.limiter.samples_per_insert <= static_cast<double>(config.max_times_sampled),
         "samples_per_insert", config.limiter.samples_per_insert,
         "at most max_times_sampled, else items are gone before they were sampled so often");
}

} // namespace troupe::replay
