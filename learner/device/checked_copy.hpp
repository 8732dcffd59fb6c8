#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// Copies `from` to `to` and returns whether all of it is finite. On the CPU this is one pass over
/// memory, for float32 and float64 of the same layout. A sparse `from` is made dense. On other
/// devices it does not wait for the check, and returns true.
bool checked_copy(const at::Tensor& from, at::Tensor& to);

/// Returns whether all elements are finite, as checked_copy() does.
bool is_finite(const at::Tensor& tensor);

} // namespace troupe::learner
