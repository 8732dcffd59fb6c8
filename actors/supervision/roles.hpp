#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/run_config.hpp"
#include "actors/roles/shard_endpoints.hpp"
#include "env/wire/context.hpp"
#include "learner/replicas/strategy.hpp"
#include "replay/chunks/spec.hpp"
#include "replay/table/table.hpp"

namespace troupe::actors {

/// What an actor of a role is connected to.
struct RoleWiring {
  std::int32_t index = 0;
  std::uint64_t incarnation = 0;
  std::int64_t steps_before = 0; // agent steps per environment made by earlier incarnations
  int environments = 0;          // number of environment actors after scaling; 0: as configured
  replay::TransitionSpec transitions;
  std::vector<ReplayActor> shards;
  ShardEndpoints remote_shards;             // used in a separate process instead of `shards`
  std::optional<ParameterActor> parameters; // to which the learner publishes
  std::function<std::shared_ptr<learner::Strategy>()> strategy; // of a learner; empty: it is alone
  at::Device device = at::kCPU;                                 // of a learner
  int local_id = 0;                                             // of a learner within its strategy
  // For a shard or parameter server that serves other processes:
  std::string endpoint; // empty: a shard serves only actors of this process
  std::shared_ptr<env::wire::Context> context;
};

/// Starts the actor of a role in this process; every placement uses this code. Errors end the actor
/// with Fault::failed.
caf::actor spawn_role(caf::actor_system& system, const RunConfig& config, Role role,
                      const RoleWiring& wiring);

/// Returns the number of actors of a role in this run.
int role_count(const RunConfig& config, Role role);

/// Returns the folder where a shard or the learner writes the snapshots from which it restarts;
/// empty if the run has none.
std::filesystem::path snapshot_folder(const RunConfig& config, Role role, std::int32_t index);

/// Returns what the run's agent stores of its environment. Throws std::invalid_argument naming the
/// key if the environment does not fit the agent.
replay::TransitionSpec stored_transitions(const RunConfig& config,
                                          const env::EnvironmentSpec& environment);

/// Returns the table configuration of one shard of the run's replay.
replay::TableConfig shard_table(const RunConfig& config);

/// Agent steps per insertion and environment, and per round of a deterministic run.
constexpr int kInsertSteps = 8;

} // namespace troupe::actors
