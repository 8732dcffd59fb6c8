#pragma once

#include "actors/protocol/run_config.hpp"
#include "experiments/config/experiment.pb.h"

namespace troupe::experiments {

/// Converts a complete experiment (config.hpp), whose rules have been checked, to a run.
actors::RunConfig plan_run(const Experiment& experiment);

/// Sets the default folders below the run folder: spill of replay, snapshots of parameter servers,
/// and, with `processes`, snapshots of shards and learners.
void use_run_folder(actors::RunConfig& config, const std::filesystem::path& run_folder,
                    bool processes);

/// The environment of the experiment alone.
env::EnvironmentConfig plan_environment(const Environment& environment);

} // namespace troupe::experiments
