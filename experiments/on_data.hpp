#pragma once

#include <string>
#include <vector>

#include "experiments/parse.hpp"

namespace troupe::experiments {

/// Whether the experiment learns from files (a classifier, a GAN), not from an environment.
bool is_on_data(const Experiment& experiment);

/// Complaints about blocks that do not go together, before defaults are filled in.
std::vector<std::string> check_blocks(const Experiment& experiment, const Origins& origins,
                                      const std::string& source);

/// Takes out what says nothing about a run on data, after defaults were filled in.
void drop_unused(Experiment& experiment);

/// Columns of the run's metrics.csv.
std::vector<std::string> metrics_columns(const Experiment& experiment);

/// The column whose curve the report shows.
std::string headline(const Experiment& experiment);

} // namespace troupe::experiments
