#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "replay/service/hosted_shard.hpp"

namespace troupe::replay {

struct ShardHostOptions {
  ShardServerOptions server = {};
  /// Time without progress, while requests wait, after which they are logged.
  std::chrono::milliseconds report_after{30'000};
  /// Receives messages about garbage, rejected connections and missing progress, on the server's
  /// thread.
  std::function<void(const std::string&)> log = [](const std::string&) {};
  /// Called before the port opens, to fill table number `table` from a checkpoint. Its exceptions
  /// propagate from the constructor.
  std::function<void(std::size_t table, Table& into)> restore = {};
};

/// Serves shards to other processes behind one port, without actors. All functions may be called on
/// any thread and wait for at most one request. `table` is an index in the list given to the
/// constructor; they throw std::out_of_range if there is no such table.
class ShardHost {
public:
  /// Throws as HostedShard and ShardServer do.
  ShardHost(env::wire::Context& context, const TableConfig& config, const Signature& signature,
            std::uint64_t seed, const ShardHostOptions& options = {});
  ShardHost(env::wire::Context& context, const std::vector<HostedTable>& tables,
            const ShardHostOptions& options = {});

  const std::string& endpoint() const { return server_.endpoint(); }
  ShardServerCounters counters() const { return server_.counters(); }

  HostedShard& shard(std::size_t table = 0) const { return *shards_.at(table); }
  TableStats stats(std::size_t table = 0) const { return shard(table).report().stats; }
  void with_table(const std::function<void(Table&)>& use, std::size_t table = 0) {
    shard(table).with_table(use);
  }

private:
  std::vector<ServedTable> served(const std::vector<HostedTable>& tables,
                                  const ShardHostOptions& options);

  std::vector<std::shared_ptr<HostedShard>> shards_;
  ShardServer server_; // declared last, because its thread uses the shards
};

} // namespace troupe::replay
