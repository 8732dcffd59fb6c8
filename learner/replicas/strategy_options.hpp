#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "collectives/communicator.hpp"
#include "collectives/rendezvous/process_topology.hpp"
#include "learner/parameter_server/parameter_server.hpp"
#include "learner/replicas/strategy.hpp"

namespace troupe::env::wire {
struct DeploymentKeys;
}

namespace troupe::learner {

enum class StrategyKind : std::uint8_t {
  one_device,       // a single replica
  mirrored,         // all replicas of this process, in sync
  multi_worker,     // all replicas of all processes, in sync
  central_storage,  // in sync; variables are kept in one place, which receives gradients
  parameter_server, // asynchronous: each replica pushes gradients and pulls parameters
  sync_groups,      // synchronous inside a group, asynchronous among the groups
  backup_workers,   // synchronous; only the first N of N + b gradients of a step count
  local_sgd         // separate optimizers; parameters are averaged every few steps
};

/// The configuration of a strategy. Options that a kind does not need are ignored; some comments
/// below name the kinds that use an option.
struct StrategyOptions {
  StrategyKind kind = StrategyKind::mirrored;
  int replicas = 1;                             // per process, as threads
  std::vector<std::vector<at::Device>> devices; // [replica][logical device]; empty: the CPU
  std::string backend = "auto"; // between processes; see collectives::make_communicator()

  int sync_groups = 2;                       // sync_groups; must divide the replicas
  int backup_workers = 1;                    // backup_workers
  std::int64_t local_steps = 8;              // local_sgd
  bool average_moments = false;              // local_sgd
  std::optional<std::int64_t> max_staleness; // parameter_server, sync_groups
  std::optional<std::int64_t> max_lead;      // parameter_server, sync_groups
  StalenessRate staleness_rate = StalenessRate::constant;
  /// Endpoints of parameter servers in other processes. The parameters are distributed among them
  /// by size. If empty, the chief's process serves them.
  std::vector<std::string> servers;
  /// The deployment's keys, which encrypt connections with parameter servers on other hosts.
  /// Without keys, the chief serves only its own host.
  std::shared_ptr<const env::wire::DeploymentKeys> keys{};

  /// Makes a client of the replicas' store, if one is served; otherwise rank 0 serves a store at
  /// the topology's address.
  std::function<c10::intrusive_ptr<c10d::Store>()> rendezvous{};

  collectives::CommunicatorOptions communicator;
};

/// Parses a kind and key=value pairs separated by spaces, e.g. "parameter_server replicas=4
/// max_staleness=8 staleness_rate=inverse". Throws std::invalid_argument with the key, value, rule
/// and nearest names.
StrategyOptions parse_strategy(const std::string& text);
std::string strategy_name(StrategyKind kind);

/// Returns how many of `num_replicas` replicas contribute gradients to an update. Throws
/// std::invalid_argument if the numbers are inconsistent.
int replicas_in_sync(const StrategyOptions& options, int num_replicas);

/// has_servers() returns whether the strategy keeps parameters and moments on parameter servers.
/// server_options() returns how these servers behave, i.e. the options of a ParameterServerHost for
/// `num_replicas` replicas.
bool has_servers(StrategyKind kind);
ParameterServerOptions server_options(const StrategyOptions& options, int num_replicas);

/// `place` is this process's place in the program. Throws std::invalid_argument if options are out
/// of range or inconsistent, std::runtime_error if the processes do not find each other.
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options,
                                        const collectives::ProcessTopology& place = {});

} // namespace troupe::learner
