#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// Represents a number as a distribution over `kRewardBins` values, which are symexp of an even
/// grid on [-10, 10]. The two neighbouring values share the mass so that the mean is the number;
/// numbers beyond the grid count as its ends.
constexpr std::int64_t kRewardBins = 65;
/// values: [rows], float -> [rows, kRewardBins]
at::Tensor two_hot(const at::Tensor& values);

} // namespace troupe::learner
