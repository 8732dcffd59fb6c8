#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "actors/supervision/node.hpp"
#include "experiments/cluster/cluster.hpp"
#include "experiments/cluster/cluster_environment.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/running/actor_launcher.hpp"
#include "experiments/commands/running/deployment.hpp"
#include "experiments/commands/running/signals.hpp"

namespace troupe::experiments::commands {
namespace {

struct NodeOptions {
  std::string head, keys, name, address;
  std::vector<std::string> labels;
  int cores = 0;
  int gpus = -1;
  std::int64_t memory = -1;
  double join_seconds = 120;
};

actors::NodeResources resources(const NodeOptions& options, const std::string& head_host) {
  if (options.address.find(':') != std::string::npos) {
    throw std::invalid_argument("--address (TROUPE_ADDRESS) is \"" + options.address
                                + "\"; it must be a host name or an IPv4 address, without a port, "
                                  "e.g. 10.0.0.2");
  }
  actors::NodeResources node = actors::resources_of_this_host();
  node.name = options.name.empty() ? host_name() : options.name;
  node.address = options.address.empty() ? address_towards(head_host) : options.address;
  const auto cores = static_cast<std::size_t>(options.cores > 0 ? options.cores : 1 << 16);
  const auto gpus = static_cast<std::size_t>(options.gpus >= 0 ? options.gpus : 1 << 16);
  actors::limit_resources(node, std::min(cores, actors::cores_of(node).size()),
                          std::min(gpus, actors::gpus_of(node).size()));
  if (options.memory >= 0) {
    node.memory_bytes = options.memory;
  }
  for (const std::string& label : options.labels) {
    const auto equals = label.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw std::invalid_argument("--label " + label + ": must be KEY=VALUE");
    }
    node.labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  return node;
}

/// Fills in what neither flags nor TROUPE_ variables give: the head, this node's name and labels,
/// and the keys, from TF_CONFIG or torchrun's variables.
NodeOptions completed(NodeOptions options) {
  if (!options.head.empty()) {
    return options;
  }
  const auto described = cluster_from_environment(process_variable);
  if (!described) {
    throw std::invalid_argument("--head is missing, and neither TF_CONFIG nor torchrun's RANK and "
                                "WORLD_SIZE are set; name it, as HOST:PORT (TROUPE_HEAD)");
  }
  const Cluster& cluster = described->cluster;
  options.head =
      cluster.head().address().empty() ? cluster.head().listen() : cluster.head().address();
  if (options.name.empty()) {
    options.name = described->node;
  }
  if (options.keys.empty()) {
    options.keys = cluster.keys();
  }
  for (const ClusterNode& node : cluster.node()) {
    if (node.name() == described->node) {
      options.labels.insert(options.labels.begin(), node.label().begin(), node.label().end());
    }
  }
  return options;
}

int play(const NodeOptions& given) {
  const NodeOptions options = completed(given);
  const Endpoint head = parse_endpoint(options.head, "--head (TROUPE_HEAD)");
  std::atomic<bool> stop = false;
  const StopSignals signals(stop);
  const actors::NodeResources node = resources(options, head.host);
  ActorLauncher launcher({}, options.keys, node.name);
  const actors::NodeConfig config{
      .head_host = head.host,
      .head_port = head.port,
      .resources = node,
      .keys = read_keys(options.keys),
      .join_seconds = options.join_seconds,
      .start_process = [&](const actors::ProcessOrder& order) { return launcher.start(order); },
      .log =
          [](const std::string& text) {
            std::printf("node: %s\n", text.c_str());
            std::fflush(stdout);
          }};
  try {
    return actors::run_node(config, stop);
  } catch (const actors::HeadNotFound& e) {
    std::fprintf(stderr, "troupe: %s\n", e.what());
    return kNoHeadCode;
  }
}

} // namespace

void add_node(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("node", "Makes this host a node of a run: joins its head, "
                                                 "and starts and stops processes on its request");
  command->footer(
      "Example: troupe node --head 10.0.0.1:4242 --keys keys/mine\n"
      "         torchrun --nnodes 2 … --no-python troupe node\n"
      "`troupe launch` starts nodes itself if its cluster file has a launcher. Without --head, "
      "TF_CONFIG or torchrun's variables give the head's address and this node's name, in the "
      "cluster that `troupe launch TF_CONFIG` (or torchrun) EXPERIMENT leads.");
  auto options = std::make_shared<NodeOptions>();
  command
      ->add_option("--head", options->head,
                   "HOST:PORT of the head; default: from TF_CONFIG or torchrun's variables")
      ->envname("TROUPE_HEAD");
  command->add_option("--keys", options->keys, "folder of `troupe keys cluster DIR`")
      ->envname("TROUPE_KEYS");
  command->add_option("--name", options->name, "unique name of the node; default: the host name")
      ->envname("TROUPE_NODE_NAME");
  command
      ->add_option("--address", options->address,
                   "address of this host for other nodes; default: the one that reaches the head")
      ->envname("TROUPE_ADDRESS");
  command->add_option("--label", options->labels, "KEY=VALUE for role.on_label; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--cores", options->cores, "cores for the run's processes; default: all")
      ->check(CLI::Range(1, 65535));
  command->add_option("--gpus", options->gpus, "GPUs for the run's processes; default: all")
      ->check(CLI::Range(0, 1024));
  command->add_option("--memory", options->memory, "bytes for the run's processes")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 50));
  command
      ->add_option("--join-seconds", options->join_seconds,
                   "to join the head, at first and after losing it")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e6));
  command->callback([options, &exit_code] { exit_code = play(*options); });
}

} // namespace troupe::experiments::commands
