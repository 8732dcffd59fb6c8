#pragma once

#include "learner/input.hpp"
#include "learner/replica_context.hpp"

namespace troupe::learner {

/// The root's tensors on every replica of the sync group, whose own names and shapes need not be
/// known: four collectives and one per tensor. `mine` counts on the root only. An empty map arrives
/// empty. Throws CollectiveError.
TensorMap broadcast_tensor_map(ReplicaContext& context, const TensorMap& mine, int root);

} // namespace troupe::learner
