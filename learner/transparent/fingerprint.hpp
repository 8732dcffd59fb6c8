#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace troupe::learner::transparent {

/// Returns a hash of the bytes of a contiguous CPU tensor. It changes if any byte changes.
std::uint64_t fingerprint(const at::Tensor& tensor);

} // namespace troupe::learner::transparent
