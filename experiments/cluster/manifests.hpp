#pragma once

#include <map>
#include <string>

#include "experiments/config/cluster.pb.h"
#include "experiments/config/experiment.pb.h"

namespace troupe::experiments {

/// Files by their paths in a folder for `kubectl apply -k FOLDER`: an indexed Job for every node
/// block, a Job for the head, a headless Service, disruption budgets, a network policy, the cluster
/// and the experiment as a ConfigMap; in mpi/ the same as a Kubeflow MPIJob, where the nodes are
/// alike. Keys are in a Secret "<name>-keys" that is referred to and never written. Of a complete
/// Kubernetes cluster and a complete experiment. Pure.
std::map<std::string, std::string> kubernetes_manifests(const Cluster& cluster,
                                                        const Experiment& experiment);

/// The command that makes the Secret of the keys that nodes need; the authority's own stays where
/// the folder was made.
std::string secret_command(const Cluster& cluster);

} // namespace troupe::experiments
