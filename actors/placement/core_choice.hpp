#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "actors/placement/node_resources.hpp"

namespace troupe::actors {

/// How much of a node's resources its processes use.
struct NodeUse {
  std::map<int, int> users = {}; // number of processes on each core of the node
  std::set<int> gpus = {};
  std::int64_t memory_bytes = 0;
};

struct CoreChoice {
  CoreSet cores;
  std::vector<int> gpus;
};

/// Chooses the cores and GPUs for one process on a node that has enough of them. They come from one
/// NUMA node if it can hold the process; if several can, from the one that has the least left
/// afterwards. Otherwise the NUMA nodes of the GPUs come first. With `oversubscribe` the least used
/// cores are chosen, fewer than `cores` if the node has fewer. Pure function.
CoreChoice choose_cores(const NodeResources& node, const NodeUse& use, std::size_t cores,
                        std::size_t gpus, bool oversubscribe);

} // namespace troupe::actors
