#pragma once

#include <ATen/core/Tensor.h>

#include "learner/nn/kernels/random_shift.hpp"

namespace troupe::learner {

/// Returns standard normal numbers by the Box-Muller method, float32 on the CPU.
at::Tensor normal(Random& random, at::IntArrayRef shape);

} // namespace troupe::learner
