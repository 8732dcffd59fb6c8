#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/experiment.pb.h"

namespace troupe::experiments {

/// Where each key of an experiment was given: dotted key -> "file:line:column" or "--set
/// key=value".
using Origins = std::map<std::string, std::string>;

/// Text format into `experiment`; returns the complaint about the first thing that is wrong, empty
/// when nothing is. Rules are not checked here.
std::string parse_text(const std::string& text, const std::string& source, Experiment& experiment,
                       Origins& origins);

/// Applies one "key=value"; returns the complaint, empty when there is none.
std::string apply_override(const std::string& assignment, Experiment& experiment, Origins& origins);

/// Complaints about the relations between keys; every key is set. `origins` may lack keys.
std::vector<std::string> check_relations(const Experiment& experiment, const Origins& origins);

/// "file:3:5: " of the key, or of the nearest block around it, or `source` + ": ".
std::string origin_of(const Origins& origins, const std::string& key, const std::string& source);

} // namespace troupe::experiments
