#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiments/config/cluster.pb.h"

namespace troupe::experiments {

/// The purpose and needs of one container of a deployment.
struct PodPlan {
  std::string component; // "node" or "head": a label of the pod and the name of its container
  std::vector<std::string> command = {}; // empty: the caller adds it to the pod
  int cores = 1;
  int gpus = 0;
  std::int64_t memory_bytes = 0;
  int port = 0;          // port it listens on; 0: none
  bool files = false;    // whether it reads the cluster file and the experiment
  std::string node = {}; // name of a node block; its nodes differ by the Job's index
  bool one = false;      // whether the block has a single node
  bool named = true;     // whether the node finds its name and its head in its environment
};

/// Labels of all objects of the deployment.
nlohmann::ordered_json deployment_labels(const Cluster& cluster);

/// A pod template: metadata and spec. The pod is unprivileged, with a read-only root file system
/// and no Kubernetes token. Requests equal limits, so that processors can be pinned. The keys are
/// mounted from their Secret, readable only by root and the pod's group.
nlohmann::ordered_json pod_template(const Cluster& cluster, const PodPlan& plan);

inline constexpr const char* kKeysFolder = "/keys";
inline constexpr const char* kFilesFolder = "/etc/troupe";

} // namespace troupe::experiments
