#pragma once

#include <torch/nn/modules/conv.h>

namespace troupe::learner {

/// Returns conv(x). For a 1x1 convolution of float32 rows, channels-last, on one CPU thread,
/// LibTorch uses oneDNN for 16 or more pictures. For fewer, it uses an MKL matrix product with
/// copies around it, and MKL does not use AVX-512 on processors other than Intel's. The result of
/// such a convolution does not depend on which picture a pixel belongs to, so this function
/// presents the same memory as 16 or more pictures. All other convolutions, layouts and types take
/// the usual path.
at::Tensor pointwise_convolution(torch::nn::Conv2d& conv, const at::Tensor& x);

} // namespace troupe::learner
