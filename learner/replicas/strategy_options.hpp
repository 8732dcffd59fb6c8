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
  central_storage,  // variables in one place, in sync: gradients go there, parameters come back
  parameter_server, // asynchronous: each replica pushes gradients and pulls parameters
  sync_groups,      // synchronous inside a group, asynchronous among the groups
  backup_workers,   // synchronous; the first N of N + b gradients of a step count
  local_sgd         // each its own optimizer; parameters averaged every so many steps
};

/// A strategy as configuration. What a kind does not need it ignores.
struct StrategyOptions {
  StrategyKind kind = StrategyKind::mirrored;
  int replicas = 1;                             // of each process, as threads
  std::vector<std::vector<at::Device>> devices; // [replica][logical device]; empty: the CPU
  std::string backend =
      "auto"; // between processes: a name that collectives::make_communicator takes

  int sync_groups = 2;                       // sync_groups; divides the replicas
  int backup_workers = 1;                    // backup_workers
  std::int64_t local_steps = 8;              // local_sgd
  bool average_moments = false;              // local_sgd
  std::optional<std::int64_t> max_staleness; // parameter_server, sync_groups
  std::optional<std::int64_t> max_lead;      // the same
  StalenessRate staleness_rate = StalenessRate::constant;
  /// Endpoints of parameter servers in other processes, among which the parameters are spread by
  /// size; empty: in this process, for one process.
  std::vector<std::string> servers;
  /// Of the deployment: connections with parameter servers on other hosts are encrypted with them.
  /// Without, the chief serves its own host alone.
  std::shared_ptr<const env::wire::DeploymentKeys> keys{};

  /// Makes a client of the replicas' store, if a store is served; else rank 0 serves one at the
  /// topology's address.
  std::function<c10::intrusive_ptr<c10d::Store>()> rendezvous{};

  collectives::CommunicatorOptions communicator;
};

/// "parameter_server replicas=4 max_staleness=8 staleness_rate=inverse": a kind and key=value, by
/// spaces. Throws std::invalid_argument with key, value, rule and the nearest names.
StrategyOptions parse_strategy(const std::string& text);
std::string strategy_name(StrategyKind kind);

/// How many of `num_replicas` replicas contribute gradients to an update. Throws
/// std::invalid_argument if the numbers are inconsistent.
int replicas_in_sync(const StrategyOptions& options, int num_replicas);

/// Whether the strategy keeps parameters and moments on parameter servers, and how these act:
/// what a ParameterServerHost of `num_replicas` replicas needs.
bool has_servers(StrategyKind kind);
ParameterServerOptions server_options(const StrategyOptions& options, int num_replicas);

/// `place`: this process within the program. Throws std::invalid_argument on options out of range
/// or inconsistent, std::runtime_error if the processes do not find each other.
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options,
                                        const collectives::ProcessTopology& place = {});

} // namespace troupe::learner
