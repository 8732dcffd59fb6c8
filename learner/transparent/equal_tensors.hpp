#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::collectives {
class Communicator;
}

/// Makes tensors equal on all ranks, or compares them. All ranks must call these functions with
/// tensors of the same types and shapes in the same order; otherwise they throw CollectiveError.
/// Tensors are sent in flat byte buffers of at most 8 MiB or one tensor.
namespace troupe::learner::transparent {

/// Sets the tensors to rank 0's. Returns true if this rank's were different.
bool broadcast_from_rank_0(const std::vector<at::Tensor>& tensors,
                           collectives::Communicator& communicator);

/// Returns the ranks whose tensors differ from rank 0's in any bit, in ascending order. The result
/// is the same on all ranks.
std::vector<int> ranks_that_differ(const std::vector<at::Tensor>& tensors,
                                   collectives::Communicator& communicator);

} // namespace troupe::learner::transparent
