#include "experiments/cluster/cluster_checks.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>

#include <google/protobuf/descriptor.h>

#include "actors/placement/node_resources.hpp"
#include "collectives/mesh/socket.hpp"
#include "collectives/rendezvous/node_list.hpp"
#include "collectives/rendezvous/process_topology.hpp"
#include "env/make/make.hpp"
#include "env/nearest_names.hpp"
#include "experiments/cluster/cluster.hpp"

namespace troupe::experiments {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// Limit that leaves room for the pod names that a Job derives from ours:
/// "<cluster>-<node>-<random>".
constexpr std::size_t kLongestName = 24;
constexpr std::int64_t kMostNodes = 65'536;

bool all(const std::string& text, bool (*good)(char)) {
  return std::all_of(text.begin(), text.end(), good);
}

bool alphanumeric(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

/// Whether the text is a valid name for a job, pod or host.
bool is_label(const std::string& text) {
  return !text.empty() && text.size() <= kLongestName && text.front() != '-' && text.back() != '-'
         && all(text, [](char c) {
              return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
            });
}

/// Whether the text is a host name or IPv4 address and cannot inject shell or ssh syntax.
bool is_host(const std::string& text) {
  return !text.empty() && text.size() <= 253 && text.front() != '-'
         && all(text, [](char c) { return alphanumeric(c) || c == '-' || c == '.' || c == '_'; });
}

class ClusterChecker {
public:
  ClusterChecker(const Cluster& cluster, const Origins& origins, const std::string& source)
      : cluster_(cluster), origins_(origins), source_(source) {}

  std::vector<std::string> check() {
    check_characters(cluster_, "");
    if (!is_label(cluster_.name())) {
      complain("name", "is \"" + cluster_.name() + "\"; it must be " + kLabelRule);
    }
    check_launchers();
    check_nodes();
    check_roles();
    check_head();
    for (auto& [key, text] : check_launcher(cluster_)) {
      complain(key, text);
    }
    return std::move(complaints_);
  }

private:
  static constexpr const char* kLabelRule =
      "1 to 24 of a-z, 0-9 and '-', with '-' neither first nor last (it becomes part of the names "
      "of hosts and pods)";

  void complain(const std::string& key, const std::string& text) {
    complaints_.push_back(origin_of(origins_, key, source_) + key + " " + text);
  }

  static std::string at(const char* block, int index) {
    return std::string(block) + "[" + std::to_string(index) + "]";
  }

  /// Line breaks or escapes in a value could inject commands.
  void check_characters(const Message& message, const std::string& prefix) {
    std::vector<const FieldDescriptor*> fields;
    const auto& view = *message.GetReflection();
    view.ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      const int count = field->is_repeated() ? view.FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i) {
        const std::string key =
            prefix
            + (field->is_repeated() ? at(field->name().c_str(), i) : std::string(field->name()));
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
          check_characters(field->is_repeated() ? view.GetRepeatedMessage(message, field, i)
                                                : view.GetMessage(message, field),
                           key + ".");
        } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
          const std::string text = field->is_repeated() ? view.GetRepeatedString(message, field, i)
                                                        : view.GetString(message, field);
          if (!all(text,
                   [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != 0x7f; })) {
            complain(key, "has a line break or another control character; leave it out");
          }
        }
      }
    }
  }

  void check_launchers() {
    std::vector<std::string> given;
    for (const auto& [name, there] : {std::pair{"local", cluster_.has_local()},
                                      {"ssh", cluster_.has_ssh()},
                                      {"slurm", cluster_.has_slurm()},
                                      {"kubernetes", cluster_.has_kubernetes()},
                                      {"mpi", cluster_.has_mpi()},
                                      {"ray", cluster_.has_ray()}}) {
      if (there) {
        given.emplace_back(name);
      }
    }
    if (given.size() > 1) {
      complain(given[1], "is given together with " + given[0]
                             + "; one of them starts the nodes, so leave the other out");
    }
    const auto kind = launcher_of(cluster_);
    if (cluster_.node_size() == 0 && kind != LauncherKind::local && kind != LauncherKind::none) {
      complain(launcher_name(kind), "is given without a node; write node { name: \"host\" … }");
    }
  }

  void check_labels(const std::string& key, const auto& texts) {
    for (const std::string& text : texts) {
      if (!key_and_value(text)) {
        complain(key, "has \"" + text + "\"; " + kLabelForm);
      }
    }
  }

  void check_numa(const ClusterNode& block, const std::string& key) {
    std::set<int> cores, gpus;
    if (block.cores() > 0 || block.gpus() > 0) {
      complain(key + ".numa", "is given together with " + key
                                  + (block.cores() > 0 ? ".cores" : ".gpus")
                                  + "; its blocks name all cores and GPUs, so leave those out");
    }
    for (int i = 0; i < block.numa_size(); ++i) {
      const std::string name = key + "." + at("numa", i);
      try {
        for (const int core : actors::parse_core_set(block.numa(i).cores())) {
          if (!cores.insert(core).second) {
            complain(name + ".cores", "has core " + std::to_string(core)
                                          + " a second time; it belongs to one NUMA node only");
            break;
          }
        }
      } catch (const std::invalid_argument& error) {
        complain(name + ".cores", std::string("is wrong: ") + error.what());
      }
      for (const int gpu : block.numa(i).gpu()) {
        if (!gpus.insert(gpu).second) {
          complain(name + ".gpu", "has GPU " + std::to_string(gpu)
                                      + " a second time; it belongs to one NUMA node only");
        }
      }
    }
  }

  void check_nodes() {
    std::int64_t total = 0;
    std::set<std::string> addresses;
    for (int i = 0; i < cluster_.node_size(); ++i) {
      const ClusterNode& block = cluster_.node(i);
      const std::string key = at("node", i);
      total += block.count();
      if (!is_label(block.name())) {
        complain(key + ".name", "is \"" + block.name() + "\"; it must be " + kLabelRule);
      }
      groups_.insert(block.name());
      for (int k = 0; k < block.count() && total <= kMostNodes; ++k) {
        const std::string name = node_name(block, k);
        if (!nodes_.insert(name).second) {
          complain(key + ".name",
                   "makes a node \"" + name
                       + "\", which another block makes too; give each its own name");
          break;
        }
      }
      try {
        for (const std::string& address : node_addresses(block)) {
          addresses_.push_back(address);
        }
      } catch (const std::invalid_argument& error) {
        complain(key + ".address", error.what());
      }
      check_labels(key + ".label", block.label());
      if (block.numa_size() > 0) {
        check_numa(block, key);
      }
    }
    if (total > kMostNodes) {
      complain("node", "counts " + std::to_string(total) + " nodes; at most "
                           + std::to_string(kMostNodes) + " are taken");
    }
    if (nodes_.empty() && cluster_.has_local()) {
      nodes_.insert("local");
    }
  }

  /// Checks the name of a node or, with `group`, of a block. The complaint about an unknown name
  /// lists the known ones, if there are any.
  void check_node_name(const std::string& key, const std::string& name, bool group) {
    if (nodes_.empty() || nodes_.contains(name) || (group && groups_.contains(name))) {
      return;
    }
    std::vector<std::string> known(nodes_.begin(), nodes_.end());
    if (group) {
      known.insert(known.end(), groups_.begin(), groups_.end());
    }
    const auto near = env::nearest_names(name, known, 1);
    complain(key, "is \"" + name + "\", but there is no such node"
                      + (near.empty() ? "; name one of the node blocks"
                                      : "; did you mean \"" + near.front() + "\"?"));
  }

  void check_roles() {
    std::set<std::string> seen;
    for (int i = 0; i < cluster_.role_size(); ++i) {
      const ClusterRole& role = cluster_.role(i);
      const std::string key = at("role", i);
      if (!seen.insert(role.name()).second) {
        complain(
            key + ".name",
            "is \"" + role.name()
                + "\", which another block has too; write everything about a role in one block");
      }
      if (role.name() == "evaluator" && role.count() > 1) {
        complain(key + ".count", "is " + std::to_string(role.count())
                                     + "; a run has one evaluator, so leave it out");
      }
      check_labels(key + ".on_label", role.on_label());
      for (const std::string& name : role.on_node()) {
        check_node_name(key + ".on_node", name, true);
      }
      for (const std::string& other : role.together()) {
        const bool apart =
            std::find(role.apart().begin(), role.apart().end(), other) != role.apart().end();
        if (other == role.name() || apart) {
          complain(key + ".together",
                   "has \"" + other + "\""
                       + (apart ? std::string(", as does ") + key + ".apart; leave one of them out"
                                : std::string(", which is the role itself; write spread: PACK")));
        }
      }
    }
  }

  std::optional<HostPort> endpoint(const char* key, bool for_nodes) {
    try {
      auto found = head_endpoint(cluster_, for_nodes);
      if (found.host.find(':') == std::string::npos || (found.host == "::" && !for_nodes)) {
        return found;
      }
      complain(key, "is \"" + (for_nodes ? cluster_.head().address() : cluster_.head().listen())
                        + "\"; processes connect to each other by IPv4, so give a host name or an "
                          "IPv4 address");
    } catch (const std::invalid_argument& error) {
      complain(key, error.what());
    }
    return std::nullopt;
  }

  void check_head() {
    if (!cluster_.head().node().empty()) {
      check_node_name("head.node", cluster_.head().node(), false);
    }
    const auto listen = endpoint("head.listen", false);
    const auto address =
        cluster_.head().address().empty() ? listen : endpoint("head.address", true);
    if (!listen || !address) {
      return;
    }
    const bool wildcard = listen->host == "0.0.0.0" || listen->host == "::";
    const bool inside =
        collectives::is_loopback(listen->host) && collectives::is_loopback(address->host);
    const auto kind = launcher_of(cluster_);
    if (kind == LauncherKind::kubernetes && listen->port == 0) {
      complain("head.listen", "is " + cluster_.head().listen()
                                  + "; with kubernetes it needs a fixed port, which the manifests "
                                    "name: write \"0.0.0.0:4242\"");
    }
    if (!inside && cluster_.keys().empty()) {
      complain("keys", "is empty and head.listen is " + cluster_.head().listen()
                           + ", off the loopback interface; create keys with `troupe keys cluster "
                             "DIR` and name the folder");
    }
    if (wildcard && cluster_.head().address().empty()
        && (kind == LauncherKind::ssh || kind == LauncherKind::mpi || kind == LauncherKind::ray)) {
      complain("head.address", "is empty and head.listen is " + cluster_.head().listen()
                                   + ", at which no node can reach it; give HOST:PORT of the host "
                                     "that runs `troupe launch`");
    }
    const auto far = std::find_if(addresses_.begin(), addresses_.end(),
                                  [](const auto& host) { return !collectives::is_loopback(host); });
    if (inside && far != addresses_.end()) {
      complain("head.listen", "is " + cluster_.head().listen() + ", which the node at " + *far
                                  + " does not reach; give an address of this host, and keys");
    }
  }

  const Cluster& cluster_;
  const Origins& origins_;
  const std::string& source_;
  std::vector<std::string> complaints_;
  std::set<std::string> nodes_, groups_;
  std::vector<std::string> addresses_;
};

} // namespace

std::vector<std::string> check_cluster(const Cluster& cluster, const Origins& origins,
                                       const std::string& source) {
  return ClusterChecker(cluster, origins, source).check();
}

std::string node_name(const ClusterNode& block, int index) {
  return block.count() == 1 ? block.name() : block.name() + "-" + std::to_string(index);
}

std::vector<std::string> node_addresses(const ClusterNode& block) {
  if (block.address().empty()) {
    return {};
  }
  std::vector<std::string> hosts;
  try {
    hosts = block.address().find('[') == std::string::npos
                ? std::vector<std::string>{block.address()}
                : collectives::expand_node_list(block.address());
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("is \"" + block.address() + "\": " + error.what());
  }
  if (hosts.size() != static_cast<std::size_t>(block.count())) {
    throw std::invalid_argument("is \"" + block.address() + "\", which names "
                                + std::to_string(hosts.size()) + " hosts; it must name "
                                + std::to_string(block.count())
                                + ", as many as the block's count, e.g. \"10.0.0.[1-4]\"");
  }
  for (const std::string& host : hosts) {
    if (!is_host(host)) {
      throw std::invalid_argument(
          "has \"" + host + "\"; a host is a name or an IPv4 address, without port or user");
    }
  }
  return hosts;
}

std::optional<std::pair<std::string, std::string>> key_and_value(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return std::nullopt;
  }
  return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

} // namespace troupe::experiments
