#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "actors/placer.hpp"

namespace troupe::experiments {

/// What is where, a line each process, and what is free, a line each node: text in columns. "?" are
/// cores of a node that has not told what it has.
std::string placement_table(const actors::Placer& placer);

/// The same: {"placement": [{"role", "index", "node", "cores": "0-3", "gpus": [0],
/// "memory_bytes"}], "free": [{"node", "address", "cores", "gpus", "memory_bytes", "known"}]}.
nlohmann::ordered_json placement_json(const actors::Placer& placer);

} // namespace troupe::experiments
