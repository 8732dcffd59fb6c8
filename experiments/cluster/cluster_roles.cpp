#include <algorithm>

#include "actors/placement/node_resources.hpp"
#include "experiments/cluster/cluster.hpp"
#include "experiments/cluster/cluster_checks.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/on_data.hpp"
#include "learner/replicas/strategy_options.hpp"

namespace troupe::experiments {
namespace {

using actors::NodeResources;
using actors::RoleNeeds;

constexpr const char* kRoles[] = {"environment", "evaluator", "learner", "parameter_server",
                                  "replay"};

/// The number of threads, with one core for each.
int threads_of(const std::string& role, const Experiment& experiment) {
  if (role == "learner") {
    return experiment.learner().threads();
  }
  return role == "environment" ? std::min(experiment.actors().threads_per_actor(),
                                          experiment.actors().environments_per_actor())
                               : 1;
}

std::vector<actors::NumaNode> numa_of(const ClusterNode& block) {
  std::vector<actors::NumaNode> numa;
  for (const NumaNode& part : block.numa()) {
    numa.push_back({.cores = actors::parse_core_set(part.cores()),
                    .gpus = {part.gpu().begin(), part.gpu().end()}});
  }
  if (numa.empty()) {
    numa.emplace_back();
    for (int core = 0; core < block.cores(); ++core) {
      numa[0].cores.push_back(core);
    }
    for (int gpu = 0; gpu < block.gpus(); ++gpu) {
      numa[0].gpus.push_back(gpu);
    }
  }
  return numa;
}

/// Takes `count` of a host's free cores, preferring neighbouring ones; false if there are too few.
bool take_cores(std::size_t count, NodeResources& rest, NodeResources& node) {
  if (actors::cores_of(rest).size() < count) {
    return false;
  }
  node.numa = rest.numa;
  for (actors::NumaNode& numa : node.numa) {
    numa.gpus.clear();
  }
  actors::limit_resources(node, count, 0);
  const auto taken = actors::cores_of(node);
  for (actors::NumaNode& numa : rest.numa) {
    std::erase_if(numa.cores,
                  [&](int core) { return std::binary_search(taken.begin(), taken.end(), core); });
  }
  return true;
}

/// Fills in a node of a local cluster. Without a number in the file, it gets all of this host's
/// cores; otherwise cores that earlier nodes have not taken. If there are too few, the node
/// simulates a larger host with cores numbered from 0. It has only the GPUs given in the file.
void complete(const ClusterNode& block, const NodeResources& here, NodeResources& rest,
              NodeResources& node) {
  node.address = "127.0.0.1";
  node.known = true;
  node.counts = false;
  if (block.numa_size() > 0) {
    return;
  }
  node.shares_cores = here.shares_cores;
  const auto gpus = node.numa[0].gpus;
  NodeResources all = here;
  if (block.cores() == 0) {
    take_cores(actors::cores_of(here).size(), all, node);
  } else if (!take_cores(static_cast<std::size_t>(block.cores()), rest, node)) {
    return;
  }
  if (node.numa.empty()) {
    node.numa.emplace_back();
  }
  node.numa[0].gpus = gpus;
}

RoleNeeds needs_of(const std::string& name, const ClusterRole* role, const Experiment& experiment) {
  RoleNeeds needs{.cores = threads_of(name, experiment), .pack = name == "learner"};
  if (name == "replay") {
    needs.memory_bytes =
        experiment.replay().capacity_bytes() / std::max(1, experiment.replay().shards());
  }
  if (role == nullptr) {
    return needs;
  }
  needs.cores = role->cores() < 0 ? needs.cores : role->cores();
  needs.gpus = role->gpus();
  needs.memory_bytes = role->memory_bytes() < 0 ? needs.memory_bytes : role->memory_bytes();
  needs.together.assign(role->together().begin(), role->together().end());
  needs.apart.assign(role->apart().begin(), role->apart().end());
  needs.on_gpu_node = role->on_gpu_node();
  for (const std::string& label : role->on_label()) {
    needs.on_labels.insert(key_and_value(label).value());
  }
  needs.on_nodes.assign(role->on_node().begin(), role->on_node().end());
  if (role->spread() != ClusterRole::AUTO) {
    needs.pack = role->spread() == ClusterRole::PACK;
  }
  return needs;
}

} // namespace

std::vector<NodeResources> cluster_nodes(const Cluster& cluster, const NodeResources& here) {
  std::vector<NodeResources> nodes;
  NodeResources rest = here;
  for (const ClusterNode& block : cluster.node()) {
    const auto addresses = node_addresses(block);
    for (int i = 0; i < block.count(); ++i) {
      NodeResources node{.name = node_name(block, i),
                         .numa = numa_of(block),
                         .memory_bytes = block.memory_bytes(),
                         .group = block.name(),
                         .known = block.cores() > 0 || block.numa_size() > 0,
                         .counts = block.numa_size() == 0};
      if (!addresses.empty()) {
        node.address = addresses[static_cast<std::size_t>(i)];
      }
      for (const std::string& label : block.label()) {
        node.labels.insert(key_and_value(label).value());
      }
      if (cluster.has_local()) {
        complete(block, here, rest, node);
      }
      nodes.push_back(std::move(node));
    }
  }
  if (nodes.empty() && cluster.has_local()) {
    nodes.push_back(here);
    nodes[0].name = nodes[0].group = "local";
    nodes[0].address = "127.0.0.1";
  }
  return nodes;
}

std::vector<std::string> cluster_overrides(const Cluster& cluster) {
  static const std::map<std::string, std::string> kKeys = {
      {"environment", "actors.environment"},
      {"replay", "replay.shards"},
      {"learner", "learner.replicas"},
      {"parameter_server", "learner.parameter_servers"}};
  std::vector<std::string> overrides;
  for (const ClusterRole& role : cluster.role()) {
    const auto key = kKeys.find(role.name());
    if (role.count() > 0 && key != kKeys.end()) {
      overrides.push_back(key->second + "=" + std::to_string(role.count()));
    }
  }
  return overrides;
}

std::map<std::string, int> role_counts(const Experiment& experiment) {
  const bool data = is_on_data(experiment);
  const bool servers =
      learner::has_servers(learner::parse_strategy(experiment.learner().strategy()).kind);
  return {{"environment", plays(experiment) ? experiment.actors().environment() : 0},
          {"evaluator", data ? 0 : 1},
          {"learner", experiment.learner().replicas()},
          {"parameter_server", servers ? experiment.learner().parameter_servers() : 0},
          {"replay", data ? 0 : experiment.replay().shards()}};
}

std::map<std::string, RoleNeeds> role_needs(const Cluster& cluster, const Experiment& experiment) {
  std::map<std::string, RoleNeeds> all;
  for (const char* name : kRoles) {
    const auto role =
        std::find_if(cluster.role().begin(), cluster.role().end(),
                     [&](const ClusterRole& candidate) { return candidate.name() == name; });
    all[name] = needs_of(name, role == cluster.role().end() ? nullptr : &*role, experiment);
  }
  all["head"] = {.cores = cluster.head().cores(), .memory_bytes = cluster.head().memory_bytes()};
  if (!cluster.head().node().empty()) {
    all["head"].on_nodes = {cluster.head().node()};
  }
  return all;
}

actors::Placer make_placer(const Cluster& cluster, const Experiment& experiment,
                           const NodeResources& here) {
  actors::Placer placer(role_needs(cluster, experiment), cluster.oversubscribe());
  for (NodeResources& node : cluster_nodes(cluster, here)) {
    placer.add_node(std::move(node));
  }
  if (!cluster.head().node().empty()) {
    if (const auto placing = placer.place("head", 0); !placing) {
      const std::string why = placing.problem.substr(0, placing.problem.find("; add nodes"));
      throw ConfigError({"head.node is \"" + cluster.head().node() + "\": " + why
                         + "; name another node, or lower head.cores and head.memory_bytes"});
    }
  }
  return placer;
}

} // namespace troupe::experiments
