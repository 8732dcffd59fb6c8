#pragma once

#include "learner/replicas/replica_context.hpp"
#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// Returns the root's tensors on every replica of the sync group. The other replicas need not know
/// the names and shapes. Takes two collectives plus one per tensor. `mine` is used only on the
/// root. An empty map stays empty. Throws CollectiveError.
TensorMap broadcast_tensor_map(ReplicaContext& context, const TensorMap& mine, int root);

} // namespace troupe::learner
