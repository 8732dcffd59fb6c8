#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/protocol/run_config.hpp"
#include "learner/replicas/strategy_options.hpp"

namespace troupe::actors {

/// How the run's learners exchange, as threads of this process or as processes with one each;
/// `servers`: where the run's parameter servers are. Throws std::invalid_argument naming the key
/// for what does not go together.
learner::StrategyOptions strategy_of(const RunConfig& config, bool processes,
                                     const std::vector<std::string>& servers = {});

/// Where learner `replica` computes, in the process that asks: its visible GPUs are taken in turn.
/// Throws std::invalid_argument where learner.device says "cuda" and there is none.
at::Device device_of_learner(const RunConfig& config, bool processes, int replica);

/// Whether parameter servers hold the run's parameters and moments.
bool has_servers(const RunConfig& config);
/// How they act, all shards alike.
learner::ParameterServerOptions server_options(const RunConfig& config);

/// Whether a learner takes part in a strategy, and is not alone.
bool has_strategy(const RunConfig& config);

/// Of a batch, for each learner: the replicas whose gradients make an update share it.
std::int64_t rows_per_replica(const RunConfig& config);

/// Whether learners wait for each other: when one dies, all restart.
bool step_together(const RunConfig& config);

} // namespace troupe::actors
