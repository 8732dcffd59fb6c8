#pragma once

#include <torch/nn/modules/batchnorm.h>

namespace troupe::learner {

/// Returns relu(norm(x)), or relu(norm(x) + residual), for x [rows, channels, height, width] and a
/// residual of the same shape. The parameters, statistics and running averages are those of `norm`.
///
/// In training on the CPU, channels-last, in float32 or bfloat16, it accesses memory half as often
/// as the three operations in sequence. It makes two passes forward (statistics, then the result)
/// and two backward. The sums of chunks of rows are added in the same order for any number of
/// threads. In all other cases (evaluation, other types and layouts, CUDA, global batch norms) it
/// runs the three operations.
at::Tensor batch_norm_relu(torch::nn::BatchNorm2d& norm, const at::Tensor& x,
                           const at::Tensor& residual = {});

} // namespace troupe::learner
