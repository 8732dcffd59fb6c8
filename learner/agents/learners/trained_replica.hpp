#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "learner/agents/training_config.hpp"
#include "learner/replicas/replica.hpp"

namespace troupe::learner {

/// A replica with what a run's configuration adds to its updates.
///
/// Resets: its networks begin again every so many updates, against what they learned too well from
/// the first data (Nikishin et al. 2022, "The primacy bias in deep reinforcement learning").
/// Networks and targets get the values that a new replica has, which follow from `seed` and the
/// number of the update alone: replicas that make the same updates stay equal. Optimizers that step
/// any of them begin again, too. Encoders, statistics of observations and rewards, counters and
/// replay stay.
///
/// Diagnostics: every so many updates it measures itself in an update (SavedReplica::diagnosis());
/// the metrics of each update have the last measurements. The period is odd, if need be by one more
/// update, so that a policy which learns in every second update is seen, too.
///
/// `make` makes a replica, the one that learns and another one for each reset. Throws
/// std::invalid_argument if that is not a SavedReplica. With neither: what `make` makes.
std::unique_ptr<Replica> trained_replica(const TrainingConfig& config, std::uint64_t seed,
                                         std::function<std::unique_ptr<Replica>()> make);

} // namespace troupe::learner
