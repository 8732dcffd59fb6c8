#pragma once

#include <cstdint>
#include <string>

namespace troupe::replay {

enum class RateLimiterKind : std::uint8_t { minimum_size, samples_per_insert, queue, stack };
const char* limiter_name(RateLimiterKind kind);
/// Throws std::invalid_argument with the list of names.
RateLimiterKind limiter_named(const std::string& name);

// clang-format off
/// Says when inserts and samples may proceed, as Reverb's rate limiters do:
///   minimum_size        Samples wait while the table holds fewer than minimum_items. Inserts never
///                       wait.
///   samples_per_insert  drift = samples_per_insert * (inserted - minimum_items) - sampled. Until
///                       minimum_items were inserted, inserts are free and samples wait. After that,
///                       inserting an item must not raise drift above error_buffer, and a sample of
///                       n must not lower it below -error_buffer. If 2 * error_buffer is less than
///                       n + samples_per_insert, which might block both sides, a sample of n may
///                       lower it to error_buffer - n - samples_per_insert.
///   queue, stack        Inserts wait while the table holds queue_items. A sample of n waits while
///                       it holds fewer than n. For tables that return each item once, oldest or
///                       newest first.
/// An insertion of several items proceeds as a whole once its first item may. So a queue or stack
/// may exceed queue_items, and max_items, by the other items of one insertion.
// clang-format on
struct RateLimiterConfig {
  RateLimiterKind kind = RateLimiterKind::samples_per_insert;
  std::int64_t minimum_items = 1;
  double samples_per_insert = 1;
  double error_buffer = 1024; // samples
  std::int64_t queue_items = 1;

  bool operator==(const RateLimiterConfig&) const = default;
};

/// Throws std::invalid_argument naming the key (replay.minimum_items …), the value and the rule.
/// `max_items` is the table's.
void check(const RateLimiterConfig& config, std::int64_t max_items);

inline bool is_queue(RateLimiterKind kind) {
  return kind == RateLimiterKind::queue || kind == RateLimiterKind::stack;
}

/// Only decides: it has no thread, clock or queue. `held` is the number of items in the table.
class RateLimiter {
public:
  explicit RateLimiter(const RateLimiterConfig& config) : config_(config) {}

  bool can_insert(std::int64_t held) const;
  bool can_sample(std::int64_t held, std::int64_t count) const;
  /// True once enough items were inserted for the first sample. A bypassed rate limiter checks
  /// nothing else.
  bool may_begin(std::int64_t held) const;

  void note_inserted(std::int64_t items) { inserted_ += items; }
  void note_sampled(std::int64_t items) { sampled_ += items; }

  /// Explains with numbers why a sample of `count` items, or an insertion, must wait; "" if it need
  /// not.
  std::string why_no_sample(std::int64_t held, std::int64_t count) const;
  std::string why_no_insert(std::int64_t held) const;

  /// Replaces the configuration and starts at drift 0, counting `held` items as inserted.
  void reconfigure(const RateLimiterConfig& config, std::int64_t held);

  /// Returns the number of inserted items that counts for the ratio.
  std::int64_t inserted() const { return inserted_; }
  std::int64_t sampled() const { return sampled_; }
  void restore(std::int64_t inserted, std::int64_t sampled) {
    inserted_ = inserted;
    sampled_ = sampled;
  }

private:
  double drift() const;
  double least_drift(std::int64_t count) const;

  RateLimiterConfig config_;
  std::int64_t inserted_ = 0;
  std::int64_t sampled_ = 0;
};

} // namespace troupe::replay
