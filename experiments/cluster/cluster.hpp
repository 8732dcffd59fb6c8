#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "actors/placement/placer.hpp"
#include "experiments/config/cluster.pb.h"
#include "experiments/config/experiment.pb.h"

namespace troupe::experiments {

/// Exit code of a node that has looked for the head in vain; EX_UNAVAILABLE of sysexits.h.
inline constexpr int kNoHeadCode = 69;

/// What starts the nodes of a cluster.
enum class LauncherKind : std::uint8_t { none, local, ssh, slurm, kubernetes, mpi, ray };
LauncherKind launcher_of(const Cluster& cluster);
const char* launcher_name(LauncherKind kind);

/// Parses a cluster file in Protobuf text format, fills in all defaults and checks all rules.
/// `source` names the text in messages, and names the cluster if the text does not. Relative paths
/// (keys, identity file, known hosts, host file) are relative to `source`. Throws ConfigError.
Cluster parse_cluster(const std::string& text, const std::string& source);

/// Like parse_cluster(), from a file. Throws ConfigError also if the file cannot be read.
Cluster load_cluster(const std::filesystem::path& file);

/// Formats a complete cluster as text that parse_cluster() reads back as an equal cluster.
std::string resolved_text(const Cluster& cluster);

/// The address and port of `head.listen`; with `for_nodes`, of `head.address`, at which the nodes
/// reach it.
struct HostPort {
  std::string host;
  int port = 0; // 0: any free port
};
HostPort head_endpoint(const Cluster& cluster, bool for_nodes = false);

/// How long a node looks for the head, at first and after losing it: `supervision.join_seconds`,
/// but at least two minutes, and 15 in a pod, because the head's pod may have to wait for a host,
/// or after failures for six minutes until its Job starts another.
std::int64_t node_join_seconds(const Cluster& cluster);

/// All nodes by name, in the file's order. A block of several nodes is expanded (name-0, name-1, …,
/// with their addresses). On a local cluster, omitted resources (cores 0) are those of `here`, and
/// a file without node blocks has one node, "local". On other clusters a node with omitted
/// resources is not `known` until it joins and reports them.
std::vector<actors::NodeResources> cluster_nodes(const Cluster& cluster,
                                                 const actors::NodeResources& here);

/// The cluster's role counts as overrides for load_experiment(), such as "replay.shards=3".
std::vector<std::string> cluster_overrides(const Cluster& cluster);

/// The number of processes of each role in a complete experiment.
std::map<std::string, int> role_counts(const Experiment& experiment);

/// The resources and placement rules of each role and of "head", which is placed on head.node.
std::map<std::string, actors::RoleNeeds> role_needs(const Cluster& cluster,
                                                    const Experiment& experiment);

/// A placer with the nodes and roles of the cluster and the experiment. The head is already placed
/// if it runs on a node. Throws ConfigError if the head fits nowhere.
actors::Placer make_placer(const Cluster& cluster, const Experiment& experiment,
                           const actors::NodeResources& here);

} // namespace troupe::experiments
