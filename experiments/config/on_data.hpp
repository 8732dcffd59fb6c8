#pragma once

#include <string>
#include <vector>

#include "experiments/config/parse.hpp"

namespace troupe::experiments {

/// Whether the experiment learns from files (a classifier or a GAN) instead of an environment.
bool is_on_data(const Experiment& experiment);

/// Whether environment actors play. If not, the run's length is given in updates.
bool plays(const Experiment& experiment);

/// Returns complaints about contradictory blocks. Call it before defaults are filled in.
std::vector<std::string> check_blocks(const Experiment& experiment, const Origins& origins,
                                      const std::string& source);

/// Clears the keys that a run without environment actors does not use. Call it after defaults are
/// filled in.
void drop_unused(Experiment& experiment);

/// The columns of the run's metrics.csv.
std::vector<std::string> metrics_columns(const Experiment& experiment);

/// The column that the report shows as a curve.
std::string headline(const Experiment& experiment);

} // namespace troupe::experiments
