#pragma once

#include <cstdint>
#include <string>

#include "actors/protocol/checkpoint.pb.h"

namespace troupe::actors {

/// The largest value of a counter in a report or a file. Sums of 32,768 such counters fit in 64
/// bits.
constexpr std::int64_t kMostCount = std::int64_t{1} << 48;

/// Throws std::invalid_argument naming the counter and its rule unless it is from 0 to kMostCount.
void check_counter(const std::string& name, std::int64_t value);

/// Does the same for the counters of a run. Also checks that its times are finite and not negative.
void check_counters(const wire::RunState& state);

} // namespace troupe::actors
