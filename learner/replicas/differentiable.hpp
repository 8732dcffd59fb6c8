#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "collectives/communicator.hpp"

namespace troupe::learner {

/// Collectives with derivatives: the gradient of the sum of all ranks' losses. All ranks call them,
/// and run backward through them, in the same order. What has no derivative throws
/// std::invalid_argument in backward. Without a gradient to compute, plain collectives.
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
