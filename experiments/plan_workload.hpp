#pragma once

#include "actors/run.hpp"
#include "experiments/experiment.pb.h"

namespace troupe::experiments {

/// For a run on data: opens them and gives `config` what makes the replicas, the run's length and
/// the period of its evaluations; else nothing. The data are opened once and shared by the replicas
/// of this process. Throws std::invalid_argument naming key, value and rule, DataError naming file
/// and row.
void plan_workload(const Experiment& experiment, actors::RunConfig& config);

} // namespace troupe::experiments
