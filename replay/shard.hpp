#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replay/insertion.hpp"
#include "replay/patience.hpp"
#include "replay/table.hpp"

namespace troupe::replay {

struct ShardLimits {
  std::size_t waiting_insertions = 4096; // at least the sum of all clients' windows
  std::size_t waiting_samples = 256;
};

/// A table and those who wait for its limiter, first come first served on either side. Decisions
/// only: no thread, clock or socket; one thread at a time. Callbacks run inside the call that let
/// them through (maybe insert() or sample() itself) and must not call the shard. An insertion never
/// waits while a sample waits for items that the table does not have.
class Shard {
public:
  Shard(const TableConfig& config, const Signature& signature, std::uint64_t seed,
        const ShardLimits& limits = {});

  /// Inserts now or when samples have made room, and then calls `accepted`. False: too many wait
  /// already; nothing was stored and `accepted` is destroyed uncalled: the caller keeps the
  /// insertion and comes again later. After its deadline it is refused and not stored. The clock is
  /// the caller's: expire() says what time it is. Throws as Table::check_insertion() does.
  bool insert(InsertionPtr insertion, std::function<void()> accepted, Patience patience = {});

  /// Samples now or when inserts have made it possible, and then calls `answer` with `count` items.
  /// It is refused when too many wait already, when `count` < 1 or more than the table can ever
  /// give, after its deadline, and on cancel_all(); `answer` gets no items then, unless `patience`
  /// has a function to tell.
  void sample(std::int64_t count, std::function<void(std::vector<Item>)> answer,
              Patience patience = {});

  /// Refuses those whose deadline is `now` or earlier.
  void expire(std::chrono::steady_clock::time_point now);
  /// When expire() is due next; empty when nobody waits with a deadline.
  std::optional<std::chrono::steady_clock::time_point> next_deadline() const;

  /// Forgets those who wait: samples are refused, insertions are destroyed without `accepted`.
  void cancel_all();

  /// Open: neither side waits for the ratio any more (samples still need min_items), so that
  /// everything on its way arrives, and no sample removes an item; for pauses and for the end of a
  /// run. Lets those through who wait.
  void set_open(bool open);

  /// Another limiter from now on; those it lets through go at once. Throws std::invalid_argument as
  /// Table::set_limiter() does; nothing has changed then.
  void set_limiter(const LimiterConfig& limiter);

  /// Lets those through who may go: for an owner who has changed the table itself.
  void move_on();

  std::size_t waiting_insertions() const { return insertions_.size(); }
  std::size_t waiting_samples() const { return samples_.size(); }

  /// Who waits and why, for a watchdog; "" when nobody does.
  std::string why_waiting() const;

  Table& table() { return table_; }
  const Table& table() const { return table_; }

private:
  struct WaitingInsertion {
    InsertionPtr insertion;
    std::function<void()> accepted;
    Patience patience;
  };
  struct WaitingSample {
    std::int64_t count = 0;
    std::function<void(std::vector<Item>)> answer;
    Patience patience;
  };

  bool may_insert() const;
  bool may_sample(std::int64_t count) const;

  Table table_;
  ShardLimits limits_;
  bool open_ = false;
  std::deque<WaitingInsertion> insertions_;
  std::deque<WaitingSample> samples_;
};

} // namespace troupe::replay
