#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiments/cluster.hpp"
#include "experiments/launchers/launcher.hpp"

namespace troupe::experiments::launchers {

/// The launcher that a cluster file names; NoLauncher for `none`. Throws std::invalid_argument for
/// what this host lacks, for Slurm outside an allocation (its job is a script: slurm_script.hpp,
/// SlurmJob), and for Kubernetes, which is started by `kubectl`.
std::unique_ptr<Launcher> make_launcher(const Cluster& cluster, LauncherKind kind,
                                        LaunchSettings settings);

/// What to start for these nodes of a cluster: each with the same arguments, on the host that the
/// launcher reaches it at: its address, or its name without one; Slurm's nodes and those of
/// mpi.hostfile in their order. Throws std::invalid_argument when there are fewer hosts than nodes.
std::vector<NodeStart> node_starts(const Cluster& cluster, LauncherKind kind,
                                   const std::vector<actors::NodeResources>& nodes,
                                   const std::vector<std::string>& arguments);

} // namespace troupe::experiments::launchers
