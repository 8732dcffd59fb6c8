#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "learner/agents/training_config.hpp"
#include "learner/replicas/replica.hpp"

namespace troupe::learner {

/// A replica whose networks begin again every so many updates, against what they learned too well
/// from the first data (Nikishin et al. 2022, "The primacy bias in deep reinforcement learning").
/// Networks and targets get the values that a new replica has, which follow from `seed` and the
/// number of the update alone: replicas that make the same updates stay equal. Optimizers that step
/// any of them begin again, too. Encoders, statistics of observations and rewards, counters and
/// replay stay.
///
/// `make` makes a replica, the one that learns and another one for each reset. Throws
/// std::invalid_argument if that is not a SavedReplica. Without resets: what `make` makes.
std::unique_ptr<Replica> with_resets(const TrainingConfig::Resets& resets, std::uint64_t seed,
                                     std::function<std::unique_ptr<Replica>()> make);

} // namespace troupe::learner
