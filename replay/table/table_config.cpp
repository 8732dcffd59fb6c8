#include "replay/table/table_config.hpp"

#include "replay/table/config_rule.hpp"

namespace troupe::replay {

namespace {

constexpr std::int64_t kMaxItems = std::int64_t{1} << 31;
constexpr std::int64_t kMaxTimes = std::int64_t{1} << 31;

/// A queue or a stack needs a sampler and a remover of the same kind.
void check_queue(const TableConfig& config, SelectorKind kind) {
  need(config.sampler.kind == kind, "sampler", selector_name(config.sampler.kind),
       kind == SelectorKind::fifo ? "fifo with the rate limiter queue"
                                  : "lifo with the rate limiter stack");
  need(config.remover.kind == kind, "remover", selector_name(config.remover.kind),
       kind == SelectorKind::fifo ? "fifo with the rate limiter queue"
                                  : "lifo with the rate limiter stack");
  need(config.max_times_sampled == 1, "max_times_sampled", config.max_times_sampled,
       "1 with the rate limiter queue or stack, which give each item once");
}

constexpr const char* kCompressions[] = {"none", "packed", "lz4", "zstd", "automatic"};

} // namespace

const char* compression_name(Compression compression) {
  return name_of(kCompressions, compression);
}

Compression compression_named(const std::string& name) {
  return value_named<Compression>(kCompressions, name, "replay.compression");
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
  if (config.sampler.fade < 1 || config.remover.fade < 1) {
    need(config.remover.kind == SelectorKind::fifo, "remover", selector_name(config.remover.kind),
         "fifo where priorities fade, as only the sampler's can");
    need(config.max_times_sampled == 0, "max_times_sampled", config.max_times_sampled,
         "0 where priorities fade");
  }
  check(config.limiter, config.max_items);
  if (config.limiter.kind == RateLimiterKind::queue)
    check_queue(config, SelectorKind::fifo);
  else if (config.limiter.kind == RateLimiterKind::stack)
    check_queue(config, SelectorKind::lifo);
  else if (config.limiter.kind == RateLimiterKind::samples_per_insert
           && config.max_times_sampled > 0)
    need(config.limiter.samples_per_insert <= static_cast<double>(config.max_times_sampled),
         "samples_per_insert", config.limiter.samples_per_insert,
         "at most max_times_sampled, else items are removed before they are sampled that often");
}

} // namespace troupe::replay
