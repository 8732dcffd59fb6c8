#include "experiments/cluster/cluster_environment.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include <google/protobuf/text_format.h>

#include "collectives/mesh/socket.hpp"
#include "collectives/rendezvous/process_topology.hpp"
#include "experiments/cluster/cluster.hpp"
#include "experiments/config/config.hpp"

namespace troupe::experiments {
namespace {

using collectives::Endpoint;
using collectives::ProcessTopology;

std::string host_text(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

/// "worker-3"; just "chief", because there is at most one.
std::string task_name(const std::string& role, int index) {
  return role == "chief" ? role : role + "-" + std::to_string(index);
}

/// Places each of the `count` processes of the role on a separate node with the label.
void add_role(Cluster& cluster, const std::string& name, int count, const std::string& label) {
  ClusterRole& role = *cluster.add_role();
  role.set_name(name);
  if (name != "evaluator") {
    role.set_count(count);
  }
  role.add_apart(name);
  if (!label.empty()) {
    role.add_on_label(label);
  }
}

void set_head(Cluster& cluster, const std::string& node, const Endpoint& at) {
  auto& head = *cluster.mutable_head();
  const bool inside = collectives::is_loopback(at.host);
  head.set_node(node);
  head.set_listen((inside ? host_text(at.host) : "0.0.0.0") + ":" + std::to_string(at.port));
  if (!inside) {
    head.set_address(host_text(at.host) + ":" + std::to_string(at.port));
  }
}

/// Fills in defaults and checks rules as for a file, but without line numbers.
Cluster complete(const Cluster& cluster, const std::string& source) {
  google::protobuf::TextFormat::Printer printer;
  std::string text;
  printer.PrintToString(cluster, &text);
  try {
    return parse_cluster(text, source);
  } catch (const ConfigError& mistake) {
    auto complaints = mistake.complaints();
    for (std::string& complaint : complaints) {
      const std::size_t end = complaint.find_first_not_of(":0123456789", source.size());
      complaint = source + ":" + complaint.substr(std::min(end, complaint.size()));
      if (cluster.keys().empty() && complaint.find(" keys is empty") != std::string::npos) {
        complaint += " in TROUPE_KEYS";
      }
    }
    throw ConfigError(complaints);
  }
}

EnvironmentCluster from_tasks(const ProcessTopology& place, Cluster cluster) {
  EnvironmentCluster out;
  const auto count = [&](const char* role) {
    const auto found = place.cluster.find(role);
    return found == place.cluster.end() ? 0 : static_cast<int>(found->second.size());
  };
  for (const auto& [role, endpoints] : place.cluster) {
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      ClusterNode& node = *cluster.add_node();
      node.set_name(task_name(role, static_cast<int>(i)));
      node.set_address(endpoints[i].host);
      node.add_label("task=" + (role == "chief" ? std::string("worker") : role));
    }
  }
  add_role(cluster, "learner", count("chief") + count("worker"), "task=worker");
  if (count("ps") > 0) {
    add_role(cluster, "parameter_server", count("ps"), "task=ps");
  }
  if (count("evaluator") > 0) {
    add_role(cluster, "evaluator", 1, "task=evaluator");
  }
  const std::string leader = count("chief") > 0 ? "chief" : "worker";
  set_head(cluster, task_name(leader, 0), place.cluster.at(leader).front());
  out.node = task_name(place.role, place.role_index);
  out.head = place.role == leader && place.role_index == 0;
  if (count(place.role.c_str()) == 0) { // an evaluator that the cluster does not list
    ClusterNode& node = *cluster.add_node();
    node.set_name(out.node);
    node.add_label("task=" + place.role);
    add_role(cluster, "evaluator", 1, "task=evaluator");
  }
  out.cluster = complete(cluster, "TF_CONFIG");
  return out;
}

EnvironmentCluster from_ranks(const ProcessTopology& place, Cluster cluster) {
  EnvironmentCluster out;
  if (place.rendezvous_port == 65535) {
    throw std::invalid_argument("MASTER_PORT is \"65535\"; the head listens at the port above, so "
                                "it must be at most 65534; choose another");
  }
  ClusterNode& node = *cluster.add_node();
  node.set_name(place.size == 1 ? "rank-0" : "rank");
  node.set_count(place.size);
  add_role(cluster, "learner", place.size, "");
  const std::string host = place.rendezvous_host.empty() ? "127.0.0.1" : place.rendezvous_host;
  set_head(cluster, "rank-0",
           {host, place.rendezvous_port == 0 ? 4242 : place.rendezvous_port + 1});
  out.node = "rank-" + std::to_string(place.rank);
  out.head = place.rank == 0;
  out.cluster = complete(cluster, "torchrun");
  return out;
}

} // namespace

std::optional<std::string> process_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<EnvironmentCluster> cluster_from_environment(const Variables& variables,
                                                           const std::string& source) {
  const bool tasks = source == "tf_config" || (source == "auto" && variables("TF_CONFIG"));
  const bool ranks =
      source == "torchrun" || (source == "auto" && variables("RANK") && variables("WORLD_SIZE"));
  if (!tasks && !ranks) {
    return std::nullopt;
  }
  const std::string name = tasks ? "tf_config" : "torchrun";
  const char* variable = tasks ? "TF_CONFIG" : "RANK";
  if (!variables(variable)) {
    throw std::invalid_argument(std::string(variable) + " is not set; " + name
                                + " reads the cluster from it");
  }
  const auto place = collectives::topology_from(
      variables, [](const std::string&) { return std::string(); }, name);
  Cluster cluster;
  cluster.set_keys(variables("TROUPE_KEYS").value_or(""));
  cluster.set_trusted_network(place.trusted_network);
  cluster.set_oversubscribe(true); // no variable can request it on small hosts
  return tasks ? from_tasks(place, std::move(cluster)) : from_ranks(place, std::move(cluster));
}

} // namespace troupe::experiments
