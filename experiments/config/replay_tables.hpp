#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/config/replay_tables.pb.h"
#include "replay/service/hosted_shard.hpp"

namespace troupe::experiments {

/// Parses the tables that `troupe replay serve --config` reads, fills in all defaults and checks
/// all rules. Throws ConfigError: "file:line:column: table[0].sampler is …".
ReplayTables parse_replay_tables(const std::string& text, const std::string& source);

/// Like parse_replay_tables(), from a file. Throws ConfigError also if the file cannot be read.
ReplayTables load_replay_tables(const std::filesystem::path& file);

/// Builds one table from flags: columns as "name:type:3,84,84" (the type and the shape may be
/// omitted: "reward") and "key=value" with the keys of `troupe list table-keys`. Throws
/// ConfigError.
ReplayTables replay_table_of_flags(const std::vector<std::string>& columns,
                                   const std::vector<std::string>& overrides);

/// Like replay_table_of_flags(), for callers without a command line: the complaints begin with the
/// key.
ReplayTable replay_table_of_keys(const std::vector<std::string>& columns,
                                 const std::vector<std::string>& assignments);

/// Converts a table to the form that a server hosts. Throws std::invalid_argument for an unknown
/// type or name.
replay::HostedTable hosted_table(const ReplayTable& table);

} // namespace troupe::experiments
