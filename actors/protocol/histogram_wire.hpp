#pragma once

#include "actors/protocol/messages.pb.h"
#include "learner/histogram.hpp"

namespace troupe::actors {

void put(const learner::Histogram& histogram, wire::Histogram& out);
/// Throws std::invalid_argument that says what is invalid.
learner::Histogram histogram_of(const wire::Histogram& in);

} // namespace troupe::actors
