#include "replay/service/shard_host.hpp"

namespace troupe::replay {

ShardHost::ShardHost(env::wire::Context& context, const TableConfig& config,
                     const Signature& signature, std::uint64_t seed,
                     const ShardHostOptions& options)
    : ShardHost(context,
                {HostedTable{.name = "", .config = config, .signature = signature, .seed = seed}},
                options) {}

ShardHost::ShardHost(env::wire::Context& context, const std::vector<HostedTable>& tables,
                     const ShardHostOptions& options)
    : server_(context, served(tables, options), options.server) {}

std::vector<ServedTable> ShardHost::served(const std::vector<HostedTable>& tables,
                                           const ShardHostOptions& options) {
  std::vector<ServedTable> made;
  for (const HostedTable& table : tables) {
    const auto shard = std::make_shared<HostedShard>(
        table, HostedShardOptions{.report_after = options.report_after, .log = options.log});
    if (options.restore)
      shard->with_table([&](Table& into) { options.restore(shards_.size(), into); });
    shards_.push_back(shard);
    made.push_back({.name = table.name,
                    .signature = table.signature,
                    .handlers = handlers_of(shard, options.log)});
  }
  return made;
}

} // namespace troupe::replay
