#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "actors/placement/placer.hpp"
#include "experiments/config/cluster.pb.h"
#include "experiments/config/experiment.pb.h"

namespace troupe::experiments {

/// What starts the nodes of a cluster.
enum class LauncherKind : std::uint8_t { none, local, ssh, slurm, kubernetes, mpi, ray };
LauncherKind launcher_of(const Cluster& cluster);
const char* launcher_name(LauncherKind kind);

/// Parses a cluster file in Protobuf text format, fills in every default and checks every rule.
/// `source` names the text in messages, and the cluster if the text does not. Relative paths (keys,
/// identity file, known hosts, host file) are relative to `source`. Throws ConfigError.
Cluster parse_cluster(const std::string& text, const std::string& source);

/// The same from a file. Throws ConfigError also when it cannot be read.
Cluster load_cluster(const std::filesystem::path& file);

/// A complete cluster as text that parse_cluster() reads back into an equal one.
std::string resolved_text(const Cluster& cluster);

/// ADDRESS and port of `head.listen`, of `head.address` where `for_nodes` (nodes reach it there).
struct HostPort {
  std::string host;
  int port = 0; // 0: a free one
};
HostPort head_endpoint(const Cluster& cluster, bool for_nodes = false);

/// Every node by name, in the file's order; a block of several is expanded (name-0, name-1, …, with
/// their addresses). On a local cluster, omitted resources (cores 0) are those of `here`; without
/// node blocks it has one node, "local". Elsewhere such a node is not `known` until it joins and
/// reports them.
std::vector<actors::NodeResources> cluster_nodes(const Cluster& cluster,
                                                 const actors::NodeResources& here);

/// The cluster's role counts as overrides for load_experiment(): "replay.shards=3".
std::vector<std::string> cluster_overrides(const Cluster& cluster);

/// How many processes of each role a complete experiment has.
std::map<std::string, int> role_counts(const Experiment& experiment);

/// The resources and placement rules of each role, and of "head", whose place is head.node.
std::map<std::string, actors::RoleNeeds> role_needs(const Cluster& cluster,
                                                    const Experiment& experiment);

/// A placer with the nodes and roles of both; the head is already placed if it runs on a node.
/// Throws ConfigError if the head fits nowhere.
actors::Placer make_placer(const Cluster& cluster, const Experiment& experiment,
                           const actors::NodeResources& here);

} // namespace troupe::experiments
