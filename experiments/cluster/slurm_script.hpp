#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "experiments/config/cluster.pb.h"

namespace troupe::experiments {

/// The files and settings with which a script or a pod starts the head.
struct LaunchFiles {
  std::filesystem::path cluster = {}; // absolute path on a file system that all nodes share
  std::filesystem::path experiment = {};
  std::filesystem::path runs = {};
};

/// The batch script of a Slurm cluster, for `sbatch`. The head runs in the batch step, and one task
/// per host runs a node. The head writes a checkpoint when it gets SIGTERM, which happens
/// slurm_signal_seconds() before the time limit or on preemption; a requeued job continues from the
/// checkpoint. A pure function.
std::string slurm_script(const Cluster& cluster, const LaunchFiles& files);

/// How long before the time limit Slurm signals the script: `supervision.grace_seconds` and half a
/// minute for the nodes to end. Slurm may do so up to a minute earlier.
std::int64_t slurm_signal_seconds(const Cluster& cluster);

/// Quotes a word for a shell with single quotes.
std::string shell_word(const std::string& text);

} // namespace troupe::experiments
