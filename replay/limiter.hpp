#pragma once

#include <cstdint>
#include <string>

namespace troupe::replay {

enum class LimiterKind : std::uint8_t { minimum_size, samples_per_insert, queue, stack };
const char* limiter_name(LimiterKind kind);
/// Throws std::invalid_argument with the list of names.
LimiterKind limiter_named(const std::string& name);

/// When inserts and samples may go on, as Reverb's rate limiters:
///   minimum_size  samples wait while the table holds fewer than min_items; inserts never wait.
///   samples_per_insert  with drift = samples_per_insert * (inserted - min_items) - sampled, an
///     insertion of one more item may not bring drift above error_buffer and a sample of n not
///     below -error_buffer, once min_items have been inserted; before that inserts are free and
///     samples wait. Where 2 * error_buffer < n + samples_per_insert (neither side might ever move)
///     samples of n may go down to error_buffer - n - samples_per_insert.
///   queue, stack  inserts wait while the table holds queue_items, samples of n while it holds
///     fewer than n: for a table that gives each item once, the oldest or the newest first.
/// An insertion is let in whole when its first item is.
struct LimiterConfig {
  LimiterKind kind = LimiterKind::samples_per_insert;
  std::int64_t min_items = 1;
  double samples_per_insert = 1;
  double error_buffer = 1024; // samples
  std::int64_t queue_items = 1;

  bool operator==(const LimiterConfig&) const = default;
};

/// Throws std::invalid_argument naming the key (replay.min_items …), the value and the rule.
/// `max_items` is the table's.
void check(const LimiterConfig& config, std::int64_t max_items);

inline bool is_queue(LimiterKind kind) {
  return kind == LimiterKind::queue || kind == LimiterKind::stack;
}

/// The decision: no thread, clock or queue. `held` is how many items the table holds now.
class Limiter {
public:
  explicit Limiter(const LimiterConfig& config) : config_(config) {}

  bool can_insert(std::int64_t held) const;
  bool can_sample(std::int64_t held, std::int64_t count) const;
  /// Enough was inserted for samples to begin at all; what is asked of an open shard.
  bool may_begin(std::int64_t held) const;

  void note_inserted(std::int64_t items) { inserted_ += items; }
  void note_sampled(std::int64_t items) { sampled_ += items; }

  /// Why a sample of `count`, or an insertion, waits, with numbers; "" when it does not.
  std::string why_no_sample(std::int64_t held, std::int64_t count) const;
  std::string why_no_insert(std::int64_t held) const;

  /// Another configuration, from drift 0 on, with `held` items taken for those inserted.
  void reconfigure(const LimiterConfig& config, std::int64_t held);

  const LimiterConfig& config() const { return config_; }
  std::int64_t inserted() const { return inserted_; } // as counted for the ratio
  std::int64_t sampled() const { return sampled_; }
  void restore(std::int64_t inserted, std::int64_t sampled) {
    inserted_ = inserted;
    sampled_ = sampled;
  }

private:
  double drift() const;
  double least_drift(std::int64_t count) const;

  LimiterConfig config_;
  std::int64_t inserted_ = 0;
  std::int64_t sampled_ = 0;
};

} // namespace troupe::replay
