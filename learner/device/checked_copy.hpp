#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// Copies `from` to `to` and returns whether all of it is finite. On the CPU this is one pass over
/// memory, for float32 and float64 of the same layout. A sparse `from` is made dense. On other
/// devices it checks nothing, which would need a wait (FiniteCheck::on_cpu).
bool checked_copy(const at::Tensor& from, at::Tensor& to);

} // namespace troupe::learner
