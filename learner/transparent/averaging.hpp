#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::collectives {
class Communicator;
}

/// What is done with the parameters of one optimizer, in its order, on every rank alike. All throw
/// CollectiveError. Flat buffers of at most `bucket_bytes` (or one parameter) are what travels.
namespace troupe::learner::transparent {

inline constexpr std::int64_t kBucketBytes = 8 << 20;

/// Sets the parameters to rank 0's. True when any rank had others.
bool broadcast_parameters(const std::vector<at::Tensor>& parameters,
                          collectives::Communicator& communicator);

/// Sets the gradients to their mean over the ranks, or to rank 0's (`from_rank_0`). A parameter
/// without a gradient on some ranks counts as zero there; without one anywhere it keeps none.
/// Sparse gradients become dense. `buffers` are kept by the caller from step to step.
void average_gradients(const std::vector<at::Tensor>& parameters,
                       collectives::Communicator& communicator, bool from_rank_0,
                       std::vector<at::Tensor>& buffers);

/// Ranks whose parameters are not rank 0's, bit for bit; ascending, the same answer on all ranks.
std::vector<int> ranks_that_differ(const std::vector<at::Tensor>& parameters,
                                   collectives::Communicator& communicator);

} // namespace troupe::learner::transparent
