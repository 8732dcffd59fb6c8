#pragma once

#include <vector>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// Throws std::invalid_argument if `snapshot` was not made by ParameterServer::snapshot(), naming
/// the invalid part.
void check_snapshot(const TensorMap& snapshot);

/// Redistributes the snapshots of all servers of an optimizer, in any order, over `shards` servers
/// as plan_shards() does. Returns [shard] for ParameterServer::restore(). Former workers are
/// forgotten. A server that holds the same segments as before gets them back bit for bit. Where
/// segments are split or joined, moments move with their elements (zeros if a part had none yet),
/// and the largest of the parts' counters and versions is used. Throws std::invalid_argument naming
/// a parameter that is incomplete, an optimizer whose state cannot be split, or an invalid
/// snapshot.
std::vector<TensorMap> reshard(const std::vector<TensorMap>& snapshots, int shards);

} // namespace troupe::learner
