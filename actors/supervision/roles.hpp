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

/// The actors and endpoints that an actor is connected to.
struct RoleWiring {
  std::int32_t index = 0;
  std::uint64_t incarnation = 0;
  std::int64_t steps_before = 0; // agent steps per environment of earlier incarnations
  int environments = 0;          // environment actors of the run as it was scaled; 0: as configured
  replay::TransitionSpec transitions;
  std::vector<ReplayActor> shards;
  ShardEndpoints remote_shards;                                 // of a process, instead of shards
  std::optional<ParameterActor> parameters;                     // the learner publishes there
  std::function<std::shared_ptr<learner::Strategy>()> strategy; // of a learner; empty: it is alone
  at::Device device = at::kCPU;                                 // of a learner
  int local_id = 0;                                             // of a learner in it
  // Of a shard or parameter server that serves other processes:
  std::string endpoint; // empty: a shard serves actors of this process only
  std::shared_ptr<env::wire::Context> context;
};

/// Starts the actor for a role in this process; the same code in every placement. Problems end the
/// actor with Fault::failed.
caf::actor spawn_role(caf::actor_system& system, const RunConfig& config, Role role,
                      const RoleWiring& wiring);

/// How many actors a role has in this run.
int role_count(const RunConfig& config, Role role);

/// Where a shard or the learner writes snapshots for its restart; empty if the run has no such
/// folder.
std::filesystem::path snapshot_folder(const RunConfig& config, Role role, std::int32_t index);

/// What the run's agent stores of its environment. Throws std::invalid_argument naming the key if
/// the environment does not fit.
replay::TransitionSpec stored_transitions(const RunConfig& config,
                                          const env::EnvironmentSpec& environment);

/// A shard's part of the run's replay settings.
replay::TableConfig shard_table(const RunConfig& config);

/// Agent steps per insertion and environment; in a deterministic run also the length of a round.
constexpr int kInsertSteps = 8;

} // namespace troupe::actors
