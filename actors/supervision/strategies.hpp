#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/protocol/run_config.hpp"
#include "learner/replicas/strategy_options.hpp"

namespace troupe::actors {

/// Returns how the run's learners exchange gradients: as threads of this process, or (`processes`)
/// in one process each. `servers`: endpoints of the run's parameter servers. Throws
/// std::invalid_argument naming the key if settings are incompatible.
learner::StrategyOptions strategy_of(const RunConfig& config, bool processes,
                                     const std::vector<std::string>& servers = {});

/// Returns the device of learner `replica`, in the calling process: the visible GPUs are used in
/// turn. Throws std::invalid_argument if learner.device is "cuda" and there is no GPU.
at::Device device_of_learner(const RunConfig& config, bool processes, int replica);

/// Whether parameter servers hold the run's parameters and moments.
bool has_servers(const RunConfig& config);
/// Returns the options of the parameter servers, which are equal for all shards.
learner::ParameterServerOptions server_options(const RunConfig& config);

/// Whether learners use a strategy, instead of a single learner on its own.
bool has_strategy(const RunConfig& config);

/// Returns the rows of a batch per learner: the replicas whose gradients make one update share the
/// batch.
std::int64_t rows_per_replica(const RunConfig& config);

/// Whether learners make updates without each other's gradients (parameter_server). With max_lead,
/// one that is far ahead waits for the others that take part, but not for learners that pause.
bool step_alone(const RunConfig& config);

/// Whether learners wait for each other, so that all restart when one dies.
bool step_together(const RunConfig& config);

} // namespace troupe::actors
