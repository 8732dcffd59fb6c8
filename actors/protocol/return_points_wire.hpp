#pragma once

#include "learner/acting/return_points.hpp"
#include "learner/replicas/replica.hpp"

namespace troupe::actors {

namespace wire {
class LearnerEvaluation;
class ReturnPoints;
} // namespace wire

constexpr int kMostReturnPoints = 64; // per evaluation

wire::ReturnPoints to_wire(const learner::ReturnPoints& points);
/// Compares the replica's critic with the returns at these points (value_errors()). Returns no
/// metrics if the replica has no critic. Throws std::invalid_argument if the points do not match
/// `transitions`.
wire::LearnerEvaluation compared(const wire::ReturnPoints& points, learner::Replica& replica,
                                 const replay::TransitionSpec& transitions);

} // namespace troupe::actors
