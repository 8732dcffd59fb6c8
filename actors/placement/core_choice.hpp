#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "actors/placement/node_resources.hpp"

namespace troupe::actors {

/// The resources of a node that are in use.
struct NodeUse {
  std::map<int, int> users = {}; // users of each of its cores
  std::set<int> gpus = {};
  std::int64_t memory_bytes = 0;
};

/// Unused cores.
std::size_t unused_cores(const CoreSet& cores, const NodeUse& use);

/// Free GPUs of the whole node.
std::vector<int> unused_gpus(const NodeResources& node, const NodeUse& use);

struct CoreChoice {
  CoreSet cores;
  std::vector<int> gpus;
};

/// The cores and GPUs that a process gets from a node with enough of them: from one NUMA node if it
/// fits (of several, the one with the least left afterwards), else from the NUMA nodes of its GPUs
/// first. With `oversubscribe` the least used cores, fewer if the node has fewer. Pure.
CoreChoice choose_cores(const NodeResources& node, const NodeUse& use, std::size_t cores,
                        std::size_t gpus, bool oversubscribe);

} // namespace troupe::actors
