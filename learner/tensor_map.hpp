#pragma once

#include <map>
#include <string>

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// Named tensors, sorted by name: a batch, the outputs of a step, a state to save.
using TensorMap = std::map<std::string, at::Tensor>;

} // namespace troupe::learner
