#pragma once

#include <string>
#include <vector>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// These functions validate a batch before it is used. `when` describes the time in messages:
/// "update 12".

/// Throws std::invalid_argument if the batch has no tensor with this name.
const at::Tensor& tensor_of(const TensorMap& batch, const std::string& name);

/// Checks for float32 or float64 [rows] + shape; with three dimensions (pictures), uint8 is also
/// accepted. Throws std::invalid_argument for other shapes and types, and std::runtime_error for
/// NaN and infinity, on every device.
void check_rows(const at::Tensor& input, const std::string& name,
                const std::vector<std::int64_t>& shape, const std::string& when);

/// Returns the batch's "label", int64 [rows] in [0, classes). Throws std::invalid_argument for
/// another shape or type, and std::runtime_error for a label out of range (on the CPU).
const at::Tensor& checked_labels(const TensorMap& batch, std::int64_t rows, std::int64_t classes,
                                 const std::string& when);

} // namespace troupe::learner
