#pragma once

#include <map>
#include <string>

#include "experiments/config/cluster.pb.h"
#include "experiments/config/experiment.pb.h"

namespace troupe::experiments {

/// Returns the files for `kubectl apply -k FOLDER` by their paths in the folder: an indexed Job for
/// every node block, a Job for the head, a headless Service, disruption budgets, a network policy,
/// and the cluster and the experiment as a ConfigMap. If all nodes are alike, mpi/ contains the
/// same deployment as a Kubeflow MPIJob. The manifests refer to the keys in a Secret "<name>-keys"
/// and never contain them. Requires a complete Kubernetes cluster and a complete experiment. A pure
/// function.
std::map<std::string, std::string> kubernetes_manifests(const Cluster& cluster,
                                                        const Experiment& experiment);

/// The command that creates the Secret with the keys that nodes need. The authority's own key stays
/// on the host where it was created.
std::string secret_command(const Cluster& cluster);

} // namespace troupe::experiments
