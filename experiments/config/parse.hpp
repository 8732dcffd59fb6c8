#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/config/experiment.pb.h"

namespace troupe::experiments {

/// Where each key of an experiment was given: maps a dotted key to "file:line:column" or "--set
/// key=value". A list whose elements were written one by one has an entry for each of them too
/// (element_name()).
using Origins = std::map<std::string, std::string>;

/// The key of an element of a list or of a repeated block: "environment.options[1]".
std::string element_name(const std::string& key, int index);

/// Parses Protobuf text into `message` (an Experiment or ReplayTables). Returns the first
/// complaint; empty if there is none. Does not check rules. Keys in repeated blocks contain the
/// index: "table[1].name".
std::string parse_text(const std::string& text, const std::string& source,
                       google::protobuf::Message& message, Origins& origins);

/// Applies one "key=value". Returns the complaint; empty if there is none.
std::string apply_override(const std::string& assignment, google::protobuf::Message& message,
                           Origins& origins);

/// Sets every unset field to its default.
void fill_defaults(google::protobuf::Message& message);

/// Adds complaints about values that break their rules. `prefix` of the keys is "" or "block.".
void check_rules(const google::protobuf::Message& message, const std::string& prefix,
                 const Origins& origins, const std::string& source,
                 std::vector<std::string>& complaints);

/// Returns complaints about an environment's task and about relations between its keys. Every key
/// must be set.
std::vector<std::string> check_environment(const Environment& environment, const Origins& origins);

/// Returns complaints about relations between keys. Every key must be set; `origins` may lack some.
std::vector<std::string> check_relations(const Experiment& experiment, const Origins& origins);

/// The origin of the key, or of the nearest list or block that contains it: "file:3:5: ". If there
/// is none, `source` + ": ".
std::string origin_of(const Origins& origins, const std::string& key, const std::string& source);

} // namespace troupe::experiments
