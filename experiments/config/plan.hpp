#pragma once

#include "actors/protocol/run_config.hpp"
#include "experiments/config/experiment.pb.h"

namespace troupe::experiments {

/// Converts a complete experiment (config.hpp), whose rules have been checked, to a run
/// configuration.
actors::RunConfig plan_run(const Experiment& experiment);

/// Sets the default folders inside the run folder: for the spill files of replay, the snapshots of
/// parameter servers and, with `processes`, the snapshots of shards and learners.
void use_run_folder(actors::RunConfig& config, const std::filesystem::path& run_folder,
                    bool processes);

/// Converts only the environment of an experiment.
env::EnvironmentConfig plan_environment(const Environment& environment);

} // namespace troupe::experiments
