#pragma once

#include <cstdint>
#include <vector>

#include "env/spec.hpp"

namespace troupe::experiments {

/// Returns `count` random actions, concatenated: within their bounds ([-1, 1] where these are
/// infinite), choices as whole numbers.
std::vector<double> random_actions(const env::ActionSpec& spec, std::size_t count,
                                   std::uint64_t seed);

} // namespace troupe::experiments
