#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "actors/placement/placer.hpp"

namespace troupe::experiments {

/// A table of the placement, with one line per process, and of the free resources, with one line
/// per node. "?" stands for the cores of a node that has not reported them yet.
std::string placement_table(const actors::Placer& placer);

/// The same table as JSON: {"placement": [{"role", "index", "node", "cores": "0-3", "gpus": [0],
/// "memory_bytes"}], "free": [{"node", "address", "cores", "gpus", "memory_bytes", "known"}]}.
nlohmann::ordered_json placement_json(const actors::Placer& placer);

} // namespace troupe::experiments
