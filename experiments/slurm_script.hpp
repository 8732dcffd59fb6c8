#pragma once

#include <filesystem>
#include <string>

#include "experiments/cluster.pb.h"

namespace troupe::experiments {

/// What a script or a pod starts the head with.
struct LaunchFiles {
  std::filesystem::path cluster = {}; // absolute, on a file system that all nodes share
  std::filesystem::path experiment = {};
  std::filesystem::path runs = {};
};

/// The batch script of a Slurm cluster, for `sbatch`: the head in the batch step, a node in a task
/// on every host. SIGTERM `supervision.grace_seconds` before the time limit, and on preemption,
/// lets the head write a checkpoint; a requeued job goes on from it. Pure.
std::string slurm_script(const Cluster& cluster, const LaunchFiles& files);

/// A word for a shell, in single quotes.
std::string shell_word(const std::string& text);

} // namespace troupe::experiments
