#pragma once

#include "actors/run.hpp"
#include "experiments/experiment.pb.h"

namespace troupe::experiments {

/// The run that a complete experiment (config.hpp) asks for. Only copies: every rule was checked
/// when the experiment was read.
actors::RunConfig plan_run(const Experiment& experiment);

/// Replay that is told no other folder spills below the run's, and parameter servers have their
/// snapshots there, with `processes` shards and learners too; before, they have none.
void use_run_folder(actors::RunConfig& config, const std::filesystem::path& run_folder,
                    bool processes);

/// The environment of the experiment alone.
env::EnvironmentConfig plan_environment(const Environment& environment);

} // namespace troupe::experiments
