#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// to = from, and whether all of it is finite: one pass over memory for float32 and float64 of one
/// layout on the CPU. A sparse `from` is made dense. On other devices nothing waits for the answer,
/// and it is true.
bool checked_copy(const at::Tensor& from, at::Tensor& to);

/// The same without the copy.
bool is_finite(const at::Tensor& tensor);

} // namespace troupe::learner
