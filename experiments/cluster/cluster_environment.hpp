#pragma once

#include <functional>
#include <optional>
#include <string>

#include "experiments/config/cluster.pb.h"

namespace troupe::experiments {

/// A cluster that another system describes in the environment of each of its processes.
struct EnvironmentCluster {
  Cluster cluster;   // complete; its launcher is none: each process is a node already
  std::string node;  // the name of this process's
  bool head = false; // this process is also where the head is
};

/// The value of a variable, if it is set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;
/// Those of this process.
std::optional<std::string> process_variable(const std::string& name);

/// From TF_CONFIG ("tf_config"): a node per task, named chief, worker-0, ps-1, evaluator, …; a
/// learner on the chief and on each worker, a parameter server on each ps, the evaluator on its
/// task, the head on the chief (without one, worker 0) at the port it lists. From torchrun's
/// variables ("torchrun"): a node per rank, named rank-0, …, with a learner each, the head on rank
/// 0 at MASTER_ADDR and the port above MASTER_PORT, which torchrun's own store has. TROUPE_KEYS
/// names the keys; roles may share cores. "auto" takes the one that is set; nothing if none is.
/// Throws std::invalid_argument (ConfigError among them) with variable, value, rule and way out.
std::optional<EnvironmentCluster> cluster_from_environment(const Variables& variables,
                                                           const std::string& source = "auto");

} // namespace troupe::experiments
