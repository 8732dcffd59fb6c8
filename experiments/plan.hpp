#pragma once

#include "actors/run.hpp"
#include "experiments/experiment.pb.h"

namespace troupe::experiments {

/// The run that a complete experiment (config.hpp) asks for. Only copies: every rule was checked
/// when the experiment was read.
actors::RunConfig plan_run(const Experiment& experiment);

/// The environment of the experiment alone.
env::EnvironmentConfig plan_environment(const Environment& environment);

} // namespace troupe::experiments
