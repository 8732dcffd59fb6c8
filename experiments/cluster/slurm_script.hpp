#pragma once

#include <filesystem>
#include <string>

#include "experiments/config/cluster.pb.h"

namespace troupe::experiments {

/// What a script or a pod starts the head with.
struct LaunchFiles {
  std::filesystem::path cluster = {}; // absolute, on a file system that all nodes share
  std::filesystem::path experiment = {};
  std::filesystem::path runs = {};
};

/// The batch script of a Slurm cluster, for `sbatch`: the head runs in the batch step, and a node
/// in one task per host. The head writes a checkpoint when it gets SIGTERM,
/// `supervision.grace_seconds` before the time limit or on preemption; a requeued job continues
/// from it. Pure.
std::string slurm_script(const Cluster& cluster, const LaunchFiles& files);

/// A word for a shell, in single quotes.
std::string shell_word(const std::string& text);

} // namespace troupe::experiments
