#include "experiments/config/replay_tables.hpp"

#include <set>
#include <sstream>

#include "experiments/config/config.hpp"
#include "experiments/config/parse.hpp"

namespace troupe::experiments {
namespace {

/// Checks relations between keys. The rules of single keys must hold.
void check_tables(const ReplayTables& tables, const Origins& origins, const std::string& source,
                  std::vector<std::string>& complaints) {
  if (tables.table_size() == 0) {
    complaints.push_back(source + ": has no table; write table { column { name: \"state\" … } }");
  }
  std::set<std::string> names;
  for (int i = 0; i < tables.table_size(); ++i) {
    const ReplayTable& table = tables.table(i);
    const std::string key = std::string("table[") + std::to_string(i) + ']';
    const std::string at = origin_of(origins, key, source);
    if (table.column_size() == 0) {
      complaints.push_back(at + key
                           + ".column is not given; a step has at least one column: column { name: "
                             "\"state\" shape: 24 }");
    }
    if (table.disk_bytes() > 0 && table.disk_folder().empty()) {
      complaints.push_back(at + key + ".disk_folder is \"\" and " + key + ".disk_bytes is "
                           + std::to_string(table.disk_bytes())
                           + "; name a folder on a disk with room, or leave disk_bytes at 0");
    }
    if (table.name().empty() && tables.table_size() > 1) {
      complaints.push_back(at + key + ".name is \"\"; each of several tables needs one");
    } else if (!names.insert(table.name()).second) {
      complaints.push_back(at + key + ".name is \"" + table.name()
                           + "\", which another table has too; give each its own");
    }
  }
}

ReplayTables checked(ReplayTables tables, const Origins& origins, const std::string& source) {
  fill_defaults(tables);
  std::vector<std::string> complaints;
  check_rules(tables, "", origins, source, complaints);
  if (complaints.empty()) {
    check_tables(tables, origins, source, complaints);
  }
  if (!complaints.empty()) {
    throw ConfigError(complaints);
  }
  return tables;
}

ReplayColumn column_of(const std::string& text) {
  const std::string origin = "--column " + text;
  std::vector<std::string> words;
  std::stringstream stream(text);
  for (std::string word; std::getline(stream, word, ':');) {
    words.push_back(word);
  }
  if (words.empty() || words[0].empty() || words.size() > 3) {
    throw ConfigError({origin
                       + ": is not a column; write name, name:type or name:type:extents, e.g. "
                         "--column pixels:uint8:3,84,84"});
  }
  ReplayColumn column;
  column.set_name(words[0]);
  Origins ignored;
  std::vector<std::string> assignments;
  if (words.size() > 1) {
    assignments.push_back("type=" + words[1]);
  }
  if (words.size() > 2) {
    assignments.push_back("shape=" + words[2]);
  }
  for (const std::string& assignment : assignments) {
    if (const std::string complaint = apply_override(assignment, column, ignored);
        !complaint.empty()) {
      throw ConfigError({origin + complaint.substr(complaint.find(": "))});
    }
  }
  return column;
}

env::ElementType element_of(const std::string& name) {
  for (const auto type : {env::ElementType::uint8, env::ElementType::float32,
                          env::ElementType::float64, env::ElementType::int64}) {
    if (name == env::element_name(type)) {
      return type;
    }
  }
  throw std::invalid_argument("a column's type is \"" + name
                              + "\"; it must be uint8, float32, float64 or int64");
}

/// Removes the origin and the name of the only table from a complaint.
std::string without_origin(std::string complaint, const std::vector<std::string>& columns,
                           const std::vector<std::string>& assignments) {
  const auto drop = [&](const std::string& origin) {
    if (complaint.starts_with(origin))
      complaint.erase(0, origin.size());
  };
  for (const std::string& column : columns)
    drop("--column " + column + ": ");
  for (const std::string& assignment : assignments)
    drop("--set " + assignment + ": ");
  drop("flags: ");
  constexpr std::string_view kTableDot = "table[0].";
  for (auto at = complaint.find(kTableDot); at != std::string::npos; at = complaint.find(kTableDot))
    complaint.erase(at, kTableDot.size());
  return complaint;
}

} // namespace

ReplayTables parse_replay_tables(const std::string& text, const std::string& source) {
  ReplayTables tables;
  Origins origins;
  if (const std::string complaint = parse_text(text, source, tables, origins); !complaint.empty()) {
    throw ConfigError({complaint});
  }
  return checked(std::move(tables), origins, source);
}

ReplayTables load_replay_tables(const std::filesystem::path& file) {
  return parse_replay_tables(read_config_file(file), file.string());
}

ReplayTables replay_table_of_flags(const std::vector<std::string>& columns,
                                   const std::vector<std::string>& overrides) {
  ReplayTables tables;
  Origins origins; // origins of the single table's keys
  std::vector<std::string> complaints;
  ReplayTable& table = *tables.add_table();
  Origins placed;
  for (const std::string& column : columns) {
    placed["table[0].column[" + std::to_string(table.column_size()) + ']'] = "--column " + column;
    *table.add_column() = column_of(column);
  }
  for (const std::string& assignment : overrides) {
    if (std::string complaint = apply_override(assignment, table, origins); !complaint.empty()) {
      complaints.push_back(std::move(complaint));
    }
  }
  if (!complaints.empty()) {
    throw ConfigError(complaints);
  }
  for (const auto& [key, origin] : origins) {
    placed["table[0]." + key] = origin;
  }
  return checked(std::move(tables), placed, "flags");
}

ReplayTable replay_table_of_keys(const std::vector<std::string>& columns,
                                 const std::vector<std::string>& assignments) {
  try {
    return replay_table_of_flags(columns, assignments).table(0);
  } catch (const ConfigError& error) {
    std::vector<std::string> complaints;
    for (const std::string& complaint : error.complaints())
      complaints.push_back(without_origin(complaint, columns, assignments));
    throw ConfigError(complaints);
  }
}

replay::HostedTable hosted_table(const ReplayTable& table) {
  replay::HostedTable made;
  made.name = table.name();
  made.seed = table.seed();
  for (const ReplayColumn& column : table.column()) {
    made.signature.columns.push_back(
        {column.name(), element_of(column.type()), {column.shape().begin(), column.shape().end()}});
  }
  made.signature.items = table.items();
  if (table.disk_bytes() > 0) {
    made.spill = {.folder = table.disk_folder(),
                  .max_disk_bytes = static_cast<std::uint64_t>(table.disk_bytes())};
  }
  made.config = {
      .max_items = table.max_items(),
      .max_bytes = table.max_bytes(),
      .sampler = {.kind = replay::selector_named(table.sampler()),
                  .exponent = table.priority_exponent()},
      .remover = {.kind = replay::selector_named(table.remover()),
                  .exponent = table.priority_exponent()},
      .max_times_sampled = table.max_times_sampled(),
      .insert_at_maximum = table.insert_at_maximum(),
      .compression = replay::compression_named(table.compression()),
      .limiter = {.kind = replay::limiter_named(table.limiter()),
                  .minimum_items = table.minimum_items(),
                  .samples_per_insert = table.samples_per_insert(),
                  .error_buffer = table.error_buffer(),
                  .queue_items = table.queue_items()},
  };
  return made;
}

} // namespace troupe::experiments
