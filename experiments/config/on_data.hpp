#pragma once

#include <string>
#include <vector>

#include "experiments/config/parse.hpp"

namespace troupe::experiments {

/// Whether the experiment learns from files (a classifier, a GAN), not from an environment.
bool is_on_data(const Experiment& experiment);

/// Whether environment actors play; else its length is a number of updates.
bool plays(const Experiment& experiment);

/// Complaints about contradicting blocks, before defaults are filled in.
std::vector<std::string> check_blocks(const Experiment& experiment, const Origins& origins,
                                      const std::string& source);

/// Clears what a run without environment actors does not use, after defaults were filled in.
void drop_unused(Experiment& experiment);

/// Columns of the run's metrics.csv.
std::vector<std::string> metrics_columns(const Experiment& experiment);

/// The column whose curve the report shows.
std::string headline(const Experiment& experiment);

} // namespace troupe::experiments
