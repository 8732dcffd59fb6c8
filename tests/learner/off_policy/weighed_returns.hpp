#pragma once

#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "learner/off_policy/importance_sampling.hpp"

namespace troupe::learner {

inline constexpr double kDiscount = 0.9;

/// Estimates of a policy's return from the weights of all recorded episodes: with the values of
/// fitted networks (robust) and without them (plain).
struct WeighedReturns {
  std::vector<std::size_t> all;
  ImportanceSampling robust, plain;

  template <class Episodes>
  WeighedReturns(const Episodes& with_values, const Episodes& without_values)
      : all(with_values.size()), robust(with_values, kDiscount), plain(without_values, kDiscount) {
    std::iota(all.begin(), all.end(), 0);
  }
  std::array<EstimatedReturn, 4> estimates() const {
    return {robust.estimate(all), robust.self_normalised(all), plain.estimate(all),
            plain.self_normalised(all)};
  }
};

} // namespace troupe::learner
