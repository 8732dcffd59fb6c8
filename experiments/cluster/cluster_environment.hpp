#pragma once

#include <functional>
#include <optional>
#include <string>

#include "experiments/config/cluster.pb.h"

namespace troupe::experiments {

/// A cluster that another system describes in the environment variables of each of its processes.
struct EnvironmentCluster {
  Cluster cluster;   // complete; it has no launcher, because each process is a node already
  std::string node;  // the name of this process's node
  bool head = false; // whether the head belongs on this process's node
};

/// The value of a variable, if it is set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;
/// Reads a variable of this process.
std::optional<std::string> process_variable(const std::string& name);

/// Builds a cluster from TF_CONFIG (`source` "tf_config") or torchrun's variables ("torchrun");
/// "auto" uses whichever is set. Returns nothing if none is set.
///
/// TF_CONFIG gives one node per task, named chief, worker-0, ps-1, evaluator and so on: a learner
/// on the chief and on each worker, a parameter server on each ps, and the evaluator on its task.
/// The head is on the chief (without one, on worker 0) at the port listed for it.
///
/// torchrun's variables give one node per rank, named rank-0, rank-1 and so on, with a learner
/// each. The head is on rank 0 at MASTER_ADDR; it uses the port above MASTER_PORT, because
/// torchrun's own store uses that one.
///
/// TROUPE_KEYS names the keys. Roles may share cores. Throws std::invalid_argument (or its
/// ConfigError) with the variable, its value, the rule and a remedy.
std::optional<EnvironmentCluster> cluster_from_environment(const Variables& variables,
                                                           const std::string& source = "auto");

} // namespace troupe::experiments
