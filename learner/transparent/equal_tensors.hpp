#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::collectives {
class Communicator;
}

/// Makes tensors equal on all ranks, or compares them. All ranks call with tensors of the same
/// types and shapes in the same order; the others throw CollectiveError. What travels are flat
/// buffers of bytes, of at most 8 MiB or one tensor.
namespace troupe::learner::transparent {

/// Sets the tensors to rank 0's. True when this rank had others.
bool broadcast_from_rank_0(const std::vector<at::Tensor>& tensors,
                           collectives::Communicator& communicator);

/// Ranks whose tensors are not rank 0's, bit for bit; ascending, the same answer on all ranks.
std::vector<int> ranks_that_differ(const std::vector<at::Tensor>& tensors,
                                   collectives::Communicator& communicator);

} // namespace troupe::learner::transparent
