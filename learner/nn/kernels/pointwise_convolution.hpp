#pragma once

#include <torch/nn/modules/conv.h>

namespace troupe::learner {

/// conv(x). A 1x1 convolution of float32 rows, channels-last, on one thread of the CPU, with fewer
/// than 16 pictures, LibTorch gives to a matrix product of MKL's, which knows no AVX-512 on
/// processors that are not Intel's, with copies around it; with 16 or more to oneDNN. Such a
/// convolution does not care which picture a pixel belongs to, so the same memory is shown to it as
/// 16 or more. All other convolutions, layouts and types go their way.
at::Tensor pointwise_convolution(torch::nn::Conv2d& conv, const at::Tensor& x);

} // namespace troupe::learner
