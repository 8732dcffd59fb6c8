#pragma once

namespace troupe::learner {
class Replica;
class ReplicaContext;
} // namespace troupe::learner

namespace troupe::actors {

namespace wire {
class LearnerEvaluation;
}

/// Computes the replica's metrics on held-out data, and its pictures if `with_pictures` is set. A
/// collective of the replicas in sync; must run on the learner's thread. Throws std::runtime_error
/// naming a picture that is not uint8 [3, height, width].
wire::LearnerEvaluation evaluated(learner::Replica& replica, learner::ReplicaContext& context,
                                  bool with_pictures);

} // namespace troupe::actors
