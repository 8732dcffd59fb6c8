#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/config/experiment.pb.h"

namespace troupe::experiments {

/// Where each key of an experiment was given: dotted key -> "file:line:column" or "--set
/// key=value".
using Origins = std::map<std::string, std::string>;

/// Parses text format into `message` (an Experiment, ReplayTables); returns the first complaint,
/// empty if there is none. Does not check rules. Keys of repeated blocks contain the index:
/// "table[1].name".
std::string parse_text(const std::string& text, const std::string& source,
                       google::protobuf::Message& message, Origins& origins);

/// Applies one "key=value"; returns the complaint, empty if there is none.
std::string apply_override(const std::string& assignment, google::protobuf::Message& message,
                           Origins& origins);

/// Sets every unset field to its default.
void fill_defaults(google::protobuf::Message& message);

/// Complaints about values that break their rules; `prefix` of their keys is "" or "block.".
void check_rules(const google::protobuf::Message& message, const std::string& prefix,
                 const Origins& origins, const std::string& source,
                 std::vector<std::string>& complaints);

/// Complaints about an environment's task and about the relations between its keys; every key is
/// set.
std::vector<std::string> check_environment(const Environment& environment, const Origins& origins);

/// Complaints about the relations between keys; every key is set. `origins` may lack keys.
std::vector<std::string> check_relations(const Experiment& experiment, const Origins& origins);

/// "file:3:5: " of the key, or of the nearest block around it, or `source` + ": ".
std::string origin_of(const Origins& origins, const std::string& key, const std::string& source);

} // namespace troupe::experiments
