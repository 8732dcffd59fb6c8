#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiments/config/cluster.pb.h"

namespace troupe::experiments {

/// What one container of a deployment is and asks for.
struct PodPlan {
  std::string component; // "node", "head": a label of the pod, and its container's name
  std::vector<std::string> command = {}; // none: who makes the pod adds it
  int cores = 1;
  int gpus = 0;
  std::int64_t memory_bytes = 0;
  int port = 0;          // that it listens at; 0: none
  bool files = false;    // it reads the cluster and the experiment
  std::string node = {}; // name of a node block; the Job's index distinguishes its nodes
  bool one = false;      // the block is of one node
  bool named = true;     // a node that finds its name and its head in its environment
};

/// Labels of everything of the deployment.
nlohmann::ordered_json deployment_labels(const Cluster& cluster);

/// A pod template: metadata and spec. Not privileged, a read-only root, no token of Kubernetes;
/// requests equal limits, so that processors may be pinned; the keys are mounted from their Secret,
/// readable by root and the pod's group alone.
nlohmann::ordered_json pod_template(const Cluster& cluster, const PodPlan& plan);

inline constexpr const char* kKeysFolder = "/keys";
inline constexpr const char* kFilesFolder = "/etc/troupe";

} // namespace troupe::experiments
