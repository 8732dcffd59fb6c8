#include "experiments/cluster/cluster.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <stdexcept>

#include <google/protobuf/text_format.h>

#include "collectives/rendezvous/cluster_spec.hpp"
#include "experiments/cluster/cluster_checks.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/parse.hpp"

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;

/// Turns "my cluster.v2" into a valid name for hosts and pods: "my-cluster-v2".
std::string label_of(std::string text) {
  for (char& c : text) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0
            ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
            : '-';
  }
  text.erase(0, text.find_first_not_of('-'));
  text.resize(std::min<std::size_t>(text.size(), 24));
  text.resize(text.find_last_not_of('-') + 1);
  return text.empty() ? "cluster" : text;
}

/// Fills in defaults that depend on the launcher: the head listens on all interfaces if the cluster
/// certainly has several hosts, and the head of a job is on its first node.
void fill_head(Cluster& cluster) {
  const bool given = cluster.has_head() && cluster.head().has_listen();
  if (!given && (cluster.has_slurm() || cluster.has_kubernetes())) {
    cluster.mutable_head()->set_listen(cluster.has_slurm() ? "0.0.0.0:0" : "0.0.0.0:4242");
  }
  if (cluster.has_slurm() && cluster.node_size() == 1 && cluster.head().node().empty()) {
    cluster.mutable_head()->set_node(node_name(cluster.node(0), 0));
  }
}

std::string beside(const fs::path& source, const std::string& path) {
  const bool relative = !path.empty() && fs::path(path).is_relative();
  return relative ? (source.parent_path() / path).lexically_normal().string() : path;
}

HostPort parse_listen(const std::string& key, const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  try {
    if (port == "0") { // 0 selects a free port; a rendezvous needs a fixed one
      return {collectives::parse_endpoint(text.substr(0, colon) + ":1").host, 0};
    }
    const auto endpoint = collectives::parse_endpoint(text);
    return {endpoint.host, endpoint.port};
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("is \"" + text + "\"; " + key
                                + " is ADDRESS:PORT: " + error.what());
  }
}

} // namespace

LauncherKind launcher_of(const Cluster& cluster) {
  return cluster.has_local()        ? LauncherKind::local
         : cluster.has_ssh()        ? LauncherKind::ssh
         : cluster.has_slurm()      ? LauncherKind::slurm
         : cluster.has_kubernetes() ? LauncherKind::kubernetes
         : cluster.has_mpi()        ? LauncherKind::mpi
         : cluster.has_ray()        ? LauncherKind::ray
                                    : LauncherKind::none;
}

const char* launcher_name(LauncherKind kind) {
  switch (kind) {
  case LauncherKind::none:
    return "none";
  case LauncherKind::local:
    return "local";
  case LauncherKind::ssh:
    return "ssh";
  case LauncherKind::slurm:
    return "slurm";
  case LauncherKind::kubernetes:
    return "kubernetes";
  case LauncherKind::mpi:
    return "mpi";
  case LauncherKind::ray:
    return "ray";
  }
  return "none";
}

Cluster parse_cluster(const std::string& text, const std::string& source) {
  Cluster cluster;
  Origins origins;
  if (const std::string complaint = parse_text(text, source, cluster, origins);
      !complaint.empty()) {
    throw ConfigError({complaint});
  }
  fill_head(cluster);
  fill_defaults(cluster);
  if (cluster.name().empty()) {
    cluster.set_name(label_of(fs::path(source).stem().string()));
  }
  std::vector<std::string> complaints;
  check_rules(cluster, "", origins, source, complaints);
  if (complaints.empty()) { // comparing invalid values with each other is useless
    complaints = check_cluster(cluster, origins, source);
  }
  if (!complaints.empty()) {
    throw ConfigError(complaints);
  }
  cluster.set_keys(beside(source, cluster.keys()));
  if (cluster.has_ssh()) {
    auto& ssh = *cluster.mutable_ssh();
    ssh.set_identity_file(beside(source, ssh.identity_file()));
    ssh.set_known_hosts(beside(source, ssh.known_hosts()));
    ssh.set_config(beside(source, ssh.config()));
  }
  if (cluster.has_mpi()) {
    cluster.mutable_mpi()->set_hostfile(beside(source, cluster.mpi().hostfile()));
  }
  return cluster;
}

Cluster load_cluster(const fs::path& file) {
  return parse_cluster(read_config_file(file), file.string());
}

std::string resolved_text(const Cluster& cluster) {
  google::protobuf::TextFormat::Printer printer;
  std::string text;
  printer.PrintToString(cluster, &text);
  return "# The complete cluster: every key with its value.\n" + text;
}

HostPort head_endpoint(const Cluster& cluster, bool for_nodes) {
  const auto& head = cluster.head();
  return for_nodes && !head.address().empty() ? parse_listen("head.address", head.address())
                                              : parse_listen("head.listen", head.listen());
}

std::int64_t node_join_seconds(const Cluster& cluster) {
  constexpr double kLeast = 120, kLeastInPod = 900;
  const bool pod = launcher_of(cluster) == LauncherKind::kubernetes;
  return static_cast<std::int64_t>(
      std::ceil(std::max(pod ? kLeastInPod : kLeast, cluster.supervision().join_seconds())));
}

} // namespace troupe::experiments
