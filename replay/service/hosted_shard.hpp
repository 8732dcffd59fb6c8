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
  std::string name = {}; // as ServedTable's
  TableConfig config = {};
  Signature signature = {};
  std::uint64_t seed = 0;
  /// Takes the chunks above config.max_bytes of memory; without a folder their items are removed.
  SegmentStoreConfig spill = {};
};

struct HostedShardOptions {
  ShardLimits limits = {};
  std::chrono::milliseconds report_after{30'000}; // without progress while requests wait
  /// Failed spills, and which requests wait when nothing moves; called by tick(). Empty: no log.
  std::function<void(const std::string&)> log = {};
};

/// Owns one shard in every placement: in an actor, behind an actor's port, or in ShardHost. The
/// shard's functions behind a lock, so that any thread may call them; callbacks run on the thread
/// of the call that serves them and must not call the shard.
class HostedShard {
public:
  /// Throws as Shard and SegmentStore do.
  explicit HostedShard(const HostedTable& table, HostedShardOptions options = {});

  /// As Shard's functions. After stop(), insert() returns false and sample() refuses.
  bool insert(InsertionPtr insertion, std::function<void()> accepted, WaitOptions wait = {});
  void sample(std::int64_t count, std::function<void(std::vector<Item>)> answer,
              WaitOptions wait = {});
  void bypass_rate_limiter(bool bypassed);
  void set_limiter(const RateLimiterConfig& limiter);

  ShardReport report() const;

  /// Refuses requests whose deadline has passed and logs; returns when to call it again.
  Deadline tick(Deadline now);

  /// Refuses all requests from now on; drops waiting ones as Shard::cancel_all() does.
  void stop();

  /// Runs `use` between two requests, on this thread; then serves requests that may proceed.
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

/// Handlers of a ShardServer that serve this shard on the server's thread.
ShardHandlers handlers_of(std::shared_ptr<HostedShard> shard,
                          std::function<void(const std::string&)> log = {});

} // namespace troupe::replay
