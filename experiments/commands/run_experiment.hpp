#pragma once

#include <filesystem>

#include "experiments/experiment.pb.h"
#include "experiments/run_folder.hpp"

namespace troupe::experiments::commands {

struct RunOptions {
  bool processes = false;
  bool json = false;
  bool quiet = false;
};

/// Trains in `folder`, from a checkpoint's folder or from the start: progress, metrics, signals, a
/// video of the trained agent, report and summary. Returns the exit code; the last line on standard
/// error is the first cause of a failure.
int run_experiment(const Experiment& experiment, const RunFolder& folder,
                   const std::filesystem::path& checkpoint, const RunOptions& options);

} // namespace troupe::experiments::commands
