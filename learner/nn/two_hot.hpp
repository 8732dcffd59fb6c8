#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// A number as a distribution over `kRewardBins` numbers, symexp of an even grid on [-10, 10]:
/// neighbours share it so that their mean is the number; numbers beyond the grid count as its ends.
constexpr std::int64_t kRewardBins = 65;
/// values: [rows], float -> [rows, kRewardBins]
at::Tensor two_hot(const at::Tensor& values);

} // namespace troupe::learner
