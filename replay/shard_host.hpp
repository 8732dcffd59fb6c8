#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "replay/remote.hpp"
#include "replay/shard.hpp"
#include "replay/stall_watch.hpp"

namespace troupe::replay {

struct ShardHostOptions {
  ShardServerOptions server = {};
  ShardLimits limits = {};
  std::chrono::milliseconds report_after{30'000}; // without progress while somebody waits
  /// For people: garbage, strangers, and why nothing moves. Called on the server's thread.
  std::function<void(const std::string&)> log = [](const std::string&) {};
  /// Fills the table before the port opens: from a checkpoint. What it throws ends the constructor.
  std::function<void(Table&)> restore = {};
};

/// A shard served to other processes, without actors: owns both the Shard and its ShardServer. The
/// server's thread calls the shard behind a lock, refuses those whose deadline passes, and logs who
/// waits for what when nothing moves. All functions: any thread; they wait for one request at most.
class ShardHost {
public:
  /// Throws as Shard and ShardServer do.
  ShardHost(env::wire::Context& context, const TableConfig& config, const Signature& signature,
            std::uint64_t seed, const ShardHostOptions& options = {});
  ShardHost(const ShardHost&) = delete;
  ShardHost& operator=(const ShardHost&) = delete;

  const std::string& endpoint() const { return server_.endpoint(); }
  ShardServerCounters counters() const { return server_.counters(); }

  TableStats stats() const;
  std::string why_waiting() const; // "" when nobody waits

  /// Throws std::invalid_argument as Table::set_limiter() does; nothing has changed then.
  void set_limiter(const LimiterConfig& limiter);

  /// Runs `use` between two requests, on this thread; requests wait meanwhile.
  void with_table(const std::function<void(Table&)>& use);

private:
  ShardHandlers handlers();
  Deadline tick(Deadline now);

  ShardHostOptions options_;
  mutable std::mutex mutex_; // of shard_
  Shard shard_;
  StallWatch watch_;   // the server's thread's
  ShardServer server_; // last: its thread uses all of the above
};

} // namespace troupe::replay
