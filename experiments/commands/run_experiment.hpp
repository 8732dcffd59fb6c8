#pragma once

#include <cstdint>
#include <filesystem>

#include "experiments/experiment.pb.h"
#include "experiments/run_folder.hpp"

namespace troupe::experiments::commands {

struct RunOptions {
  bool processes = false;
  std::uint16_t port = 0; // where the processes meet; 0: a free one
  bool json = false;
  bool quiet = false;
};

/// Makes the experiment's environment once, with its camera, models and OpenGL, so that what is
/// wrong with them is told before a run's folder exists. Throws what env::make_environment throws.
void check_environment(const Experiment& experiment);

/// As actors::verify_checkpoint(); without the actors nothing is checked.
void verify_checkpoint(const std::filesystem::path& checkpoint);

/// Trains in `folder`, from a checkpoint's folder or from the start: progress, metrics, signals, a
/// video of the trained agent, report and summary. Returns the exit code; the last line on standard
/// error is the first cause of a failure.
int run_experiment(const Experiment& experiment, const RunFolder& folder,
                   const std::filesystem::path& checkpoint, const RunOptions& options);

} // namespace troupe::experiments::commands
