#pragma once

#include <ATen/core/Tensor.h>

#include "learner/nn/kernels/random_shift.hpp"

namespace troupe::learner {

/// Standard normal numbers, float32 on the CPU, by Box and Muller.
at::Tensor normal(Random& random, at::IntArrayRef shape);

} // namespace troupe::learner
