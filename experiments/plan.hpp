#pragma once

#include "actors/run.hpp"
#include "experiments/experiment.pb.h"

namespace troupe::experiments {

/// The run that a complete experiment (config.hpp) asks for. Only copies: every rule was checked
/// when the experiment was read. `run_folder`: where replay spills that is told
/// no other folder, and where parameter servers have their snapshots (none where it is empty).
actors::RunConfig plan_run(const Experiment& experiment,
                           const std::filesystem::path& run_folder = {});

/// The environment of the experiment alone.
env::EnvironmentConfig plan_environment(const Environment& environment);

} // namespace troupe::experiments
