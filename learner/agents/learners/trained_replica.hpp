#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "learner/agents/training_config.hpp"
#include "learner/replicas/replica.hpp"

namespace troupe::learner {

/// Wraps a replica and adds resets and diagnostics, as configured for the run.
///
/// Resets: every `period` updates its networks are reset to new initial values, because they may
/// have overfitted to the first data (Nikishin et al. 2022, "The primacy bias in deep reinforcement
/// learning"). The new values of networks and targets depend only on `seed` and the number of the
/// update, so replicas that make the same updates stay equal. The optimizers of these networks are
/// reset, too. Encoders, statistics of observations and rewards, counters and replay are kept.
///
/// Diagnostics: every `diagnostics_period` updates the replica measures its networks during an
/// update (SavedReplica::diagnosis()). The metrics of all updates contain the latest measurements.
/// An even period is increased by one, so that a policy that learns in every second update is
/// measured, too.
///
/// `make` makes the replica that learns and another one for each reset. Throws
/// std::invalid_argument if it is not a SavedReplica. If neither is configured, returns what `make`
/// makes.
std::unique_ptr<Replica> trained_replica(const TrainingConfig& config, std::uint64_t seed,
                                         std::function<std::unique_ptr<Replica>()> make);

} // namespace troupe::learner
