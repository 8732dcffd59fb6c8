#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "actors/protocol/run_config.hpp"
#include "actors/supervision/deployment.hpp"

namespace troupe::actors {

struct RunResult {
  Progress progress;
  Evaluated evaluation;             // the final one; without returns if the run was stopped before
  bool interrupted = false;         // by `stop`
  std::string error;                // first cause; empty on success
  std::filesystem::path checkpoint; // the last complete one; empty if there is none
};

/// Throws std::invalid_argument naming the key if this configuration cannot run, in one process or
/// (`processes`) with one process per actor. Called before anything starts.
void check_run(const RunConfig& config, bool processes);

/// Throws std::invalid_argument with key, value, rule and remedy if a run with this configuration
/// cannot resume from the checkpoint. Changes nothing.
void check_resumption(const RunConfig& config, const std::filesystem::path& checkpoint);

/// Trains until a limit in config.stop is reached or `stop` becomes true. Then it evaluates, writes
/// a checkpoint to folder/checkpoints/<updates> and returns. `resume_from` is a checkpoint's folder
/// or empty. Blocks. Throws std::invalid_argument or std::runtime_error for errors found before the
/// first step.
RunResult run(const RunConfig& config, const std::filesystem::path& folder,
              const std::filesystem::path& resume_from, const Deployment& deployment,
              const RunCallbacks& callbacks, const std::atomic<bool>& stop);

} // namespace troupe::actors
