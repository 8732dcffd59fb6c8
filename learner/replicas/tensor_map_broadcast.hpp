#pragma once

#include "learner/replicas/replica_context.hpp"
#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// The root's tensors on every replica of the sync group, whose own names and shapes need not be
/// known: four collectives and one per tensor. `mine` counts on the root only. An empty map arrives
/// empty. Throws CollectiveError.
TensorMap broadcast_tensor_map(ReplicaContext& context, const TensorMap& mine, int root);

} // namespace troupe::learner
