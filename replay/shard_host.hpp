#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "replay/remote.hpp"
#include "replay/shard.hpp"

namespace troupe::replay {

struct ShardHostOptions {
  ShardServerOptions server = {};
  ShardLimits limits = {};                        // of each table
  std::chrono::milliseconds report_after{30'000}; // without progress while somebody waits
  /// For people: garbage, strangers, and why nothing moves. Called on the server's thread.
  std::function<void(const std::string&)> log = [](const std::string&) {};
  /// Fills each table before the port opens, from a checkpoint; `table` is its place in the list.
  /// What it throws ends the constructor.
  std::function<void(std::size_t table, Table& into)> restore = {};
};

/// A table to be served.
struct HostedTable {
  std::string name; // as ServedTable's
  TableConfig config = {};
  Signature signature = {};
  std::uint64_t seed = 0;
  /// What config.max_bytes of memory has no room for goes here; without a folder it leaves.
  SegmentStoreConfig spill = {};
};

/// Shards served to other processes behind one port, without actors: owns the tables and their
/// ShardServer. The server's thread calls a shard behind its lock, refuses those whose deadline
/// passes, and logs who waits for what when nothing moves. All functions: any thread; they wait for
/// one request at most. `table`: a place in the list given, from 0; throws std::out_of_range.
class ShardHost {
public:
  /// Throws as Shard and ShardServer do.
  ShardHost(env::wire::Context& context, const TableConfig& config, const Signature& signature,
            std::uint64_t seed, const ShardHostOptions& options = {});
  ShardHost(env::wire::Context& context, const std::vector<HostedTable>& tables,
            const ShardHostOptions& options = {});
  ~ShardHost();
  ShardHost(const ShardHost&) = delete;
  ShardHost& operator=(const ShardHost&) = delete;

  const std::string& endpoint() const { return server_.endpoint(); }
  ShardServerCounters counters() const { return server_.counters(); }

  TableStats stats(std::size_t table = 0) const;
  std::string why_waiting(std::size_t table = 0) const; // "" when nobody waits

  /// Throws std::invalid_argument as Table::set_limiter() does; nothing has changed then.
  void set_limiter(const LimiterConfig& limiter, std::size_t table = 0);

  /// Runs `use` between two requests, on this thread; requests wait meanwhile.
  void with_table(const std::function<void(Table&)>& use, std::size_t table = 0);

private:
  class Hosted;
  std::vector<ServedTable> served(const std::vector<HostedTable>& tables);

  ShardHostOptions options_;
  std::vector<std::unique_ptr<Hosted>> shards_;
  ShardServer server_; // last: its thread uses all of the above
};

} // namespace troupe::replay
