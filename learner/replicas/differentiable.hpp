#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "collectives/communicator.hpp"

namespace troupe::learner {

/// Differentiable collectives. The gradient is that of the sum of all ranks' losses. All ranks must
/// call these functions, and run backward through them, in the same order. Backward throws
/// std::invalid_argument through operations without a derivative. If no gradient is required, they
/// act as plain collectives.
at::Tensor reduced(collectives::Communicator& communicator, const at::Tensor& tensor,
                   collectives::ReduceOp op);
at::Tensor gathered(collectives::Communicator& communicator,
                    const at::Tensor& tensor); // [rank, …]
at::Tensor scattered(collectives::Communicator& communicator, const at::Tensor& tensor,
                     collectives::ReduceOp op); // [size·n, …] -> [n, …]
at::Tensor broadcasted(collectives::Communicator& communicator, const at::Tensor& tensor, int root);
at::Tensor exchanged(collectives::Communicator& communicator,
                     const at::Tensor& tensor); // [to, …] -> [from, …]

} // namespace troupe::learner
