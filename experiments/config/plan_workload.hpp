#pragma once

#include "actors/protocol/run_config.hpp"
#include "experiments/config/experiment.pb.h"

namespace troupe::experiments {

/// For a run on data, opens the data and sets the replica factory, the length and the evaluation
/// period of `config`; does nothing for other runs. The replicas of this process share the data.
/// Throws std::invalid_argument naming key, value and rule, DataError naming file and row.
void plan_workload(const Experiment& experiment, actors::RunConfig& config);

} // namespace troupe::experiments
