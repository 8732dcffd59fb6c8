#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "replay/service/shard_server.hpp"
#include "replay/service/spill_watch.hpp"
#include "replay/service/stall_watch.hpp"
#include "replay/table/shard.hpp"

namespace troupe::replay {

/// A table to be served.
struct HostedTable {
  std::string name = {}; // as in ServedTable
  TableConfig config = {};
  Signature signature = {};
  std::uint64_t seed = 0;
  /// Where chunks above config.max_bytes are stored; without a folder their items are removed.
  SegmentStoreConfig spill = {};
};

struct HostedShardOptions {
  /// Time without progress, while requests wait, after which tick() logs them.
  std::chrono::milliseconds report_after{30'000};
  /// Receives messages about failed spills, and about waiting requests if there is no progress.
  /// Called by tick(). Empty: no log.
  std::function<void(const std::string&)> log = {};
};

/// Owns one shard, whether it is in an actor, behind an actor's port or in a ShardHost. A lock
/// guards the functions of the shard, so that any thread may call them. Callbacks run on the thread
/// of the call that serves them and must not call the shard.
class HostedShard {
public:
  /// Throws as Shard and SegmentStore do.
  explicit HostedShard(const HostedTable& table, HostedShardOptions options = {});

  /// Like the functions of Shard. After stop(), insert() returns false and sample() refuses.
  bool insert(InsertionPtr insertion, std::function<void()> accepted, WaitOptions wait = {});
  void sample(std::int64_t count, std::function<void(std::vector<Item>)> answer,
              WaitOptions wait = {});
  void bypass_rate_limiter(bool bypassed);
  void set_limiter(const RateLimiterConfig& limiter);

  bool has_inserted(std::uint64_t writer, std::uint64_t sequence) const; // as Table's
  ShardReport report() const;

  /// Refuses requests whose deadline has passed, and logs. Returns when it must be called again.
  Deadline tick(Deadline now);

  /// Refuses all requests from now on, and drops the waiting ones as Shard::cancel_all() does.
  void stop();

  /// Calls `use` on this thread, between two requests, and then serves the requests that may
  /// proceed.
  void with_table(const std::function<void(Table&)>& use);

private:
  mutable std::mutex mutex_; // guards the members below
  std::string name_;
  HostedShardOptions options_;
  Shard shard_;
  StallWatch stall_;
  SpillWatch spills_;
  bool stopped_ = false;
};

/// Returns handlers with which a ShardServer serves this shard on its thread.
ShardHandlers handlers_of(std::shared_ptr<HostedShard> shard,
                          std::function<void(const std::string&)> log = {});

} // namespace troupe::replay
