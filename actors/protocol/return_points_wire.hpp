#pragma once

#include "learner/acting/return_points.hpp"

namespace troupe::actors {

namespace wire {
class ReturnPoints;
}

constexpr int kMostReturnPoints = 64; // of one evaluation

wire::ReturnPoints to_wire(const learner::ReturnPoints& points);
learner::ReturnPoints from_wire(const wire::ReturnPoints& points);

} // namespace troupe::actors
