#pragma once

#include "actors/protocol/run_config.hpp"
#include "experiments/config/experiment.pb.h"

namespace troupe::experiments {

/// For a run on data, opens the data and sets the replica factory, the length and the evaluation
/// period of `config`; for other runs, does nothing. All replicas in this process share the data.
/// Throws std::invalid_argument with key, value and rule, and DataError with file and row.
void plan_workload(const Experiment& experiment, actors::RunConfig& config);

} // namespace troupe::experiments
