#pragma once

#include "learner/acting/return_points.hpp"
#include "learner/replicas/replica.hpp"

namespace troupe::actors {

namespace wire {
class LearnerEvaluation;
class ReturnPoints;
} // namespace wire

constexpr int kMostReturnPoints = 64; // of one evaluation

wire::ReturnPoints to_wire(const learner::ReturnPoints& points);
/// What the replica's critic says of the points (value_errors()); no metrics if it has none. Throws
/// std::invalid_argument if they are not of such transitions.
wire::LearnerEvaluation compared(const wire::ReturnPoints& points, learner::Replica& replica,
                                 const replay::TransitionSpec& transitions);

} // namespace troupe::actors
