#pragma once

#include <string>
#include <vector>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// What a batch brings is checked before it is believed. `when`, for messages: "update 12".

/// Throws std::invalid_argument when the batch has no tensor of that name.
const at::Tensor& tensor_of(const TensorMap& batch, const std::string& name);

/// float32 or float64 [rows] + shape; of three dimensions (pictures) also uint8. Throws
/// std::invalid_argument for another, std::runtime_error on NaN and infinity.
void check_rows(const at::Tensor& input, const std::string& name,
                const std::vector<std::int64_t>& shape, const std::string& when);

/// The batch's "label", int64 [rows] in [0, classes). Throws std::invalid_argument for another
/// shape or type, std::runtime_error for a label out of range (on the CPU).
const at::Tensor& checked_labels(const TensorMap& batch, std::int64_t rows, std::int64_t classes,
                                 const std::string& when);

} // namespace troupe::learner
