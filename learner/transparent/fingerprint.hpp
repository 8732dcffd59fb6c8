#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace troupe::learner::transparent {

/// Of the bytes of a contiguous tensor in the processor's memory: another number when one differs.
std::uint64_t fingerprint(const at::Tensor& tensor);

} // namespace troupe::learner::transparent
