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
  std::size_t waiting_insertions = 4096; // should be at least the sum of all clients' windows
  std::size_t waiting_bytes = std::size_t{1} << 30; // bytes of their rows and items
  std::size_t waiting_samples = 256;
};

/// A table and the requests that wait for its rate limiter; insertions and samples are each served
/// first come, first served. It has no thread, clock or socket and is used by one thread at a time.
/// Callbacks run inside the call that serves them (possibly insert() or sample() itself) and must
/// not call the shard. An insertion never waits while a sample waits for items that the table does
/// not have.
class Shard {
public:
  Shard(const TableConfig& config, const Signature& signature, std::uint64_t seed,
        const ShardLimits& limits = {});

  /// Inserts now, or once the rate limiter allows it, and then calls `accepted`. Returns false if
  /// too many insertions or bytes are waiting already: nothing is stored, `accepted` is destroyed
  /// without being called, and the caller should try again later. An insertion that still waits at
  /// its deadline is refused and not stored; the caller reports the time with expire(). Throws as
  /// Table::check_insertion() does.
  bool insert(InsertionPtr insertion, std::function<void()> accepted, WaitOptions wait = {});

  /// Samples now, or once the rate limiter allows it, and then calls `answer` with `count` items. A
  /// sample is refused if too many samples are waiting already, if `count` is below 1 or more than
  /// the table can ever return, after the deadline, and by cancel_all(). A refused sample calls
  /// wait.refused or, if that is empty, `answer` without items.
  void sample(std::int64_t count, std::function<void(std::vector<Item>)> answer,
              WaitOptions wait = {});

  /// Refuses requests whose deadline is `now` or earlier, and cancelled ones.
  void expire(std::chrono::steady_clock::time_point now);
  /// Returns when expire() is due next; empty if no waiting request has a deadline.
  std::optional<std::chrono::steady_clock::time_point> next_deadline() const;

  /// Drops all waiting requests: samples are refused, insertions are destroyed without calling
  /// `accepted`.
  void cancel_all();

  /// Suspends the rate limiter's ratio for pauses and the end of a run, so that requests in flight
  /// complete: samples then wait only for minimum_items, insertions do not wait, and no sample
  /// removes an item. Serves waiting requests.
  void bypass_rate_limiter(bool bypassed);

  /// Replaces the rate limiter and serves the requests that it allows. Throws std::invalid_argument
  /// as Table::set_limiter() does, without changing anything.
  void set_limiter(const RateLimiterConfig& limiter);

  /// Serves the waiting requests that may proceed. The owner calls it after changing the table
  /// directly.
  void serve_waiters();

  std::size_t waiting_insertions() const { return insertions_.size(); }
  std::size_t waiting_samples() const { return samples_.size(); }

  /// Says which requests wait and why, for a watchdog; "" if none waits.
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
  std::size_t waiting_bytes_ = 0; // sum over insertions_
  std::deque<WaitingSample> samples_;
};

} // namespace troupe::replay
