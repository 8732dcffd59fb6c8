#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replay/chunks/insertion.hpp"
#include "replay/table/table.hpp"
#include "replay/table/wait_options.hpp"

namespace troupe::replay {

struct ShardLimits {
  std::size_t waiting_insertions = 4096;            // at least the sum of all clients' windows
  std::size_t waiting_bytes = std::size_t{1} << 30; // of their rows and items
  std::size_t waiting_samples = 256;
};

/// A table with the requests that wait for its rate limiter, first come first served on either
/// side. Decisions only: no thread, clock or socket; one thread at a time. Callbacks run inside the
/// call that serves them (possibly insert() or sample() itself) and must not call the shard. An
/// insertion never waits while a sample waits for items that the table does not have.
class Shard {
public:
  Shard(const TableConfig& config, const Signature& signature, std::uint64_t seed,
        const ShardLimits& limits = {});

  /// Inserts now, or once samples have made room, and then calls `accepted`. False: too many
  /// insertions wait already, or too many bytes; nothing is stored, `accepted` is destroyed without
  /// a call, and the caller tries again later. An insertion is refused and not stored after its
  /// deadline; the caller tells the time by expire(). Throws as Table::check_insertion() does.
  bool insert(InsertionPtr insertion, std::function<void()> accepted, WaitOptions wait = {});

  /// Samples now, or once inserts have made it possible, and then calls `answer` with `count`
  /// items. Refuses if too many samples wait already, if `count` is below 1 or more than the table
  /// can ever give, after the deadline, and on cancel_all(): calls wait.refused, or without it
  /// `answer` with no items.
  void sample(std::int64_t count, std::function<void(std::vector<Item>)> answer,
              WaitOptions wait = {});

  /// Refuses requests whose deadline is `now` or earlier.
  void expire(std::chrono::steady_clock::time_point now);
  /// When expire() is due next; empty if no waiting request has a deadline.
  std::optional<std::chrono::steady_clock::time_point> next_deadline() const;

  /// Drops all waiting requests: refuses samples, destroys insertions without calling `accepted`.
  void cancel_all();

  /// While bypassed, neither side waits for the ratio (samples still need min_items), so that
  /// requests in flight complete, and no sample removes an item; for pauses and the end of a run.
  /// Serves waiting requests.
  void bypass_rate_limiter(bool bypassed);

  /// Replaces the rate limiter and serves the requests that it allows. Throws std::invalid_argument
  /// as Table::set_limiter() does, and changes nothing then.
  void set_limiter(const RateLimiterConfig& limiter);

  /// Serves the waiting requests that may proceed; for an owner that has changed the table
  /// directly.
  void serve_waiters();

  std::size_t waiting_insertions() const { return insertions_.size(); }
  std::size_t waiting_samples() const { return samples_.size(); }

  /// Which requests wait and why, for a watchdog; "" if none does.
  std::string why_waiting() const;

  Table& table() { return table_; }
  const Table& table() const { return table_; }

private:
  struct WaitingInsertion {
    InsertionPtr insertion;
    std::function<void()> accepted;
    WaitOptions wait;
    std::size_t bytes = 0;
  };
  struct WaitingSample {
    std::int64_t count = 0;
    std::function<void(std::vector<Item>)> answer;
    WaitOptions wait;
  };

  bool may_insert() const;
  bool may_sample(std::int64_t count) const;

  Table table_;
  ShardLimits limits_;
  bool bypassed_ = false;
  std::deque<WaitingInsertion> insertions_;
  std::size_t waiting_bytes_ = 0; // of insertions_
  std::deque<WaitingSample> samples_;
};

} // namespace troupe::replay
