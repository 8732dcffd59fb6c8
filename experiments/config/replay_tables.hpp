#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/config/replay_tables.pb.h"
#include "replay/service/hosted_shard.hpp"

namespace troupe::experiments {

/// The tables of a text as `troupe replay serve --config` reads it, with every default filled in
/// and every rule checked. Throws ConfigError: "file:line:column: table[0].sampler is …".
ReplayTables parse_replay_tables(const std::string& text, const std::string& source);

/// The same from a file. Throws ConfigError also when the file cannot be read.
ReplayTables load_replay_tables(const std::filesystem::path& file);

/// One table from flags: columns as "name:type:3,84,84" (the type may be left out: "reward", and so
/// may the shape) and "key=value" of `troupe list table-keys`. Throws ConfigError.
ReplayTables replay_table_of_flags(const std::vector<std::string>& columns,
                                   const std::vector<std::string>& overrides);

/// The same for callers other than a command line: the complaints begin with the key.
ReplayTable replay_table_of_keys(const std::vector<std::string>& columns,
                                 const std::vector<std::string>& assignments);

/// What a table is served as. Throws std::invalid_argument on an unknown type or name.
replay::HostedTable hosted_table(const ReplayTable& table);

} // namespace troupe::experiments
