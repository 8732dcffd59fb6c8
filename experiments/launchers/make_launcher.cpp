#include "experiments/launchers/make_launcher.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "experiments/launchers/local_launcher.hpp"
#include "experiments/launchers/mpi_launcher.hpp"
#include "experiments/launchers/ray_launcher.hpp"
#include "experiments/launchers/slurm.hpp"
#include "experiments/launchers/ssh_launcher.hpp"

namespace troupe::experiments::launchers {
namespace {

std::chrono::milliseconds from_seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::duration<double>(seconds));
}

SshSettings ssh_settings(const Cluster& cluster) {
  const auto& ssh = cluster.ssh();
  return {.user = ssh.user(),
          .port = ssh.port(),
          .identity_file = ssh.identity_file(),
          .known_hosts = ssh.known_hosts(),
          .config = ssh.config(),
          .program = ssh.program(),
          .folder = ssh.folder(),
          .connect_limit = from_seconds(ssh.connect_seconds()),
          .start_limit = from_seconds(ssh.start_seconds()),
          .grace = from_seconds(cluster.supervision().grace_seconds()),
          .lost = from_seconds(cluster.supervision().lost_seconds())};
}

MpiSettings mpi_settings(const Cluster& cluster) {
  const auto& mpi = cluster.mpi();
  return {.mpirun = mpi.mpirun(),
          .program = mpi.program(),
          .options = {mpi.option().begin(), mpi.option().end()},
          .start_limit = from_seconds(mpi.start_seconds())};
}

RaySettings ray_settings(const Cluster& cluster) {
  const auto& ray = cluster.ray();
  return {.address = ray.address(),
          .python = ray.python(),
          .program = ray.program(),
          .strategy = ray.strategy(),
          .start_limit = from_seconds(ray.start_seconds())};
}

/// Hosts in the order of the nodes; empty if each node has its own address.
std::vector<std::string> hosts_in_order(const Cluster& cluster, LauncherKind kind) {
  if (kind == LauncherKind::slurm)
    return allocated_nodes().value_or(std::vector<std::string>{});
  if (kind == LauncherKind::mpi && !cluster.mpi().hostfile().empty())
    return read_hostfile(cluster.mpi().hostfile());
  return {};
}

} // namespace

std::unique_ptr<Launcher> make_launcher(const Cluster& cluster, LauncherKind kind,
                                        LaunchSettings settings) {
  switch (kind) {
  case LauncherKind::none:
    return std::make_unique<NoLauncher>();
  case LauncherKind::local:
    return std::make_unique<LocalLauncher>(std::move(settings));
  case LauncherKind::ssh:
    return std::make_unique<SshLauncher>(std::move(settings), ssh_settings(cluster));
  case LauncherKind::slurm:
    return std::make_unique<SlurmLauncher>(std::move(settings),
                                           from_seconds(cluster.supervision().join_seconds()));
  case LauncherKind::mpi:
    return std::make_unique<MpiLauncher>(std::move(settings), mpi_settings(cluster));
  case LauncherKind::ray:
    return std::make_unique<RayLauncher>(std::move(settings), ray_settings(cluster));
  case LauncherKind::kubernetes:
    break;
  }
  throw std::invalid_argument("the nodes of a kubernetes cluster are started by kubectl: write its "
                              "files with --manifests DIR");
}

std::vector<NodeStart> node_starts(const Cluster& cluster, LauncherKind kind,
                                   const std::vector<actors::NodeResources>& nodes,
                                   const std::vector<std::string>& arguments) {
  const bool in_order = kind == LauncherKind::slurm
                        || (kind == LauncherKind::mpi && !cluster.mpi().hostfile().empty());
  const auto hosts = hosts_in_order(cluster, kind);
  if (in_order && hosts.size() < nodes.size())
    throw std::invalid_argument(
        std::string("the cluster has ") + std::to_string(nodes.size()) + " nodes, and "
        + (kind == LauncherKind::slurm ? std::string("this Slurm job") : cluster.mpi().hostfile())
        + " has " + std::to_string(hosts.size()) + " hosts; ask for more, or lower node.count");
  std::vector<NodeStart> starts;
  for (const actors::NodeResources& node : nodes) {
    NodeStart start{.name = node.name,
                    .arguments = arguments,
                    .cores = static_cast<int>(actors::cores_of(node).size()),
                    .gpus = static_cast<int>(actors::gpus_of(node).size())};
    if (in_order)
      start.host = hosts[starts.size()];
    else if (kind != LauncherKind::local && kind != LauncherKind::ray)
      start.host = node.address.empty() ? node.name : node.address;
    starts.push_back(std::move(start));
  }
  return starts;
}

} // namespace troupe::experiments::launchers
