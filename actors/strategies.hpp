#pragma once

#include <cstdint>

#include "actors/run.hpp"
#include "learner/strategy_options.hpp"

namespace troupe::actors {

/// How the run's learners exchange, as threads of this process or as processes with one each.
/// Throws std::invalid_argument naming the key for what does not go together.
learner::StrategyOptions strategy_of(const RunConfig& config, bool processes);

/// Whether parameter servers hold the run's parameters and moments, which its checkpoints lack.
bool has_servers(const RunConfig& config);

/// Of a batch, for each learner: the replicas whose gradients make an update share it.
std::int64_t rows_per_replica(const RunConfig& config);

} // namespace troupe::actors
