#pragma once

#include <torch/nn/modules/batchnorm.h>

namespace troupe::learner {

/// relu(norm(x)), or relu(norm(x) + residual); [rows, channels, height, width], the residual of the
/// same shape. In training on the CPU, channels-last, in float32 or bfloat16, it reads and writes
/// memory half as often as the three operations one after another: two passes forward (statistics;
/// the result) and two backward, the sums of chunks of rows added in one order however many threads
/// there are. All else (evaluation, other types and layouts, CUDA, global batch norms) is those
/// operations. Parameters, statistics and their running averages are the norm's own.
at::Tensor batch_norm_relu(torch::nn::BatchNorm2d& norm, const at::Tensor& x,
                           const at::Tensor& residual = {});

} // namespace troupe::learner
