#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "actors/node_resources.hpp"

namespace troupe::actors {

/// What of a node is in use.
struct NodeUse {
  std::map<int, int> users = {}; // of each of its cores
  std::set<int> gpus = {};
  std::int64_t memory_bytes = 0;
};

/// Cores that nobody uses.
std::size_t unused_cores(const CoreSet& cores, const NodeUse& use);

/// GPUs of the whole node that nobody has.
std::vector<int> unused_gpus(const NodeResources& node, const NodeUse& use);

struct CoreChoice {
  CoreSet cores;
  std::vector<int> gpus;
};

/// Which cores and GPUs of a node that has so many a process gets: of one NUMA node where there is
/// room for all of it (of several the one that has least left then), else of the NUMA nodes with
/// its GPUs first. With `oversubscribe` the least used cores, fewer where the node has fewer. Pure.
CoreChoice choose_cores(const NodeResources& node, const NodeUse& use, std::size_t cores,
                        std::size_t gpus, bool oversubscribe);

} // namespace troupe::actors
