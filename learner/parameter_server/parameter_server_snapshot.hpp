#pragma once

#include <vector>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// Throws std::invalid_argument naming what ParameterServer::snapshot() would not have given.
void check_snapshot(const TensorMap& snapshot);

/// The snapshots of all servers of an optimizer, of any order, spread over `shards` servers as
/// plan_shards() does: [shard] what ParameterServer::restore() takes. Former workers are forgotten.
/// A server that holds the same segments as before gets them back bit for bit. Where segments are
/// cut or joined, moments go with their elements (zeros where a part had none yet), and the
/// greatest of the parts' counters and versions apply. Throws std::invalid_argument naming the
/// parameter that is not whole, an optimizer whose state cannot be cut, or what no snapshot() gave.
std::vector<TensorMap> reshard(const std::vector<TensorMap>& snapshots, int shards);

} // namespace troupe::learner
