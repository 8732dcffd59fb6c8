#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "actors/placer.hpp"
#include "experiments/cluster.pb.h"
#include "experiments/experiment.pb.h"

namespace troupe::experiments {

/// Who starts the nodes of a cluster.
enum class LauncherKind : std::uint8_t { none, local, ssh, slurm, kubernetes, mpi };
LauncherKind launcher_of(const Cluster& cluster);
const char* launcher_name(LauncherKind kind);

/// A cluster file in Protobuf text format, with every default filled in and every rule checked;
/// `source` names the text in messages and gives the name where the text has none. Relative paths
/// (keys, identity file, known hosts, host file) become those beside `source`. Throws ConfigError.
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

/// Every node by name, in the file's order: blocks of several are written out (name-0, name-1, …,
/// with their addresses). What the file leaves open (cores 0) is that of `here` on a local cluster,
/// which without node blocks has the one node "local"; elsewhere the node is not `known` until it
/// joins and tells them.
std::vector<actors::NodeResources> cluster_nodes(const Cluster& cluster,
                                                 const actors::NodeResources& here);

/// Overrides for load_experiment(): what the cluster's role counts change, "replay.shards=3".
std::vector<std::string> cluster_overrides(const Cluster& cluster);

/// How many processes of each role a complete experiment has.
std::map<std::string, int> role_counts(const Experiment& experiment);

/// What each role takes and where it may be, by the cluster and a complete experiment; "head"
/// among them, which is placed where head.node says.
std::map<std::string, actors::RoleNeeds> role_needs(const Cluster& cluster,
                                                    const Experiment& experiment);

/// A placer with the nodes and roles of both, the head placed already where it is on a node.
/// Throws ConfigError when the head has no place.
actors::Placer make_placer(const Cluster& cluster, const Experiment& experiment,
                           const actors::NodeResources& here);

} // namespace troupe::experiments
