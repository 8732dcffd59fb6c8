#include "actors/roles/rendezvous_actor.hpp"
#include "actors/supervision/strategies.hpp"
#include "actors/supervision/supervisor_parts.hpp"

namespace troupe::actors::supervision {

bool in_processes(const SupervisorState& state) {
  return state.options.head_port != 0;
}

RoleWiring wiring_here(SupervisorState& state, const ActorKey& key) {
  const auto& config = state.options.config;
  RoleWiring wiring;
  wiring.index = key.second;
  wiring.incarnation = state.processes.at(key).incarnation;
  wiring.steps_before = state.processes.at(key).steps_before;
  wiring.environments = config.actors.environment;
  wiring.transitions = state.options.transitions;
  wiring.shards = state.shards;
  if (key.first == Role::parameter_server) {
    if (!state.context)
      state.context = std::make_shared<env::wire::Context>();
    wiring.context = state.context;
    wiring.endpoint = state.server_endpoints.at(static_cast<std::size_t>(key.second));
  }
  if (key.first == Role::learner) {
    wiring.device = device_of_learner(config, false, key.second);
    if (key.second == 0)
      wiring.parameters = state.parameters;
    if (has_strategy(config)) {
      if (!state.strategy)
        state.strategy = learner::make_strategy(strategy_of(config, false, state.server_endpoints));
      wiring.strategy = [shared = state.strategy] { return shared; };
      wiring.local_id = key.second;
    }
  }
  return wiring;
}

wire::Wiring wiring_of(const SupervisorState& state, const ActorKey& key) {
  const auto& config = state.options.config;
  const auto& process = state.processes.at(key);
  wire::Wiring wiring;
  for (const auto& endpoint : state.shard_endpoints)
    wiring.add_shard_endpoints(endpoint);
  wiring.set_parameter_endpoint(state.parameter_endpoint);
  for (const auto& endpoint : state.server_endpoints)
    wiring.add_server_endpoints(endpoint);
  wiring.set_incarnation(process.incarnation);
  wiring.set_done_steps(process.steps_before);
  wiring.set_lost_seconds(config.supervision.lost_seconds);
  wiring.set_environments(config.actors.environment);
  wiring.set_trusted_network(state.options.deployment.trusted_network);
  // Learners on one host need no network.
  for (int i = 0; state.nodes && i < config.learner.replicas; ++i)
    wiring.add_learner_nodes(state.nodes->node_of(role_name(Role::learner), i));
  return wiring;
}

bool is_connected(Role role, Role other) {
  return role == Role::environment ? other == Role::replay || other == Role::learner
         : role == Role::learner   ? other == Role::replay
                                   : role == Role::evaluator && other == Role::learner;
}

void announce(Self self, Role moved) {
  for (const auto& [key, handles] : self->state.handles)
    if (is_connected(key.first, moved) && handles.process
        && self->state.processes.phase(key) == Phase::up)
      caf::anon_send(handles.process, wire_atom_v, encode(wiring_of(self->state, key)));
}

void open_rendezvous(Self self) {
  auto& state = self->state;
  bool first = true; // whether no learner has started yet
  for (const auto& [key, process] : state.processes.all())
    first = first && (key.first != Role::learner || process.phase == Phase::absent);
  if (!in_processes(state) || (!first && state.rendezvous))
    return;
  if (state.rendezvous)
    self->send_exit(*state.rendezvous, caf::exit_reason::user_shutdown);
  state.rendezvous = self->spawn(rendezvous_actor);
}

void free_learners(Self self, std::int32_t lost, const std::string& reason) {
  auto& state = self->state;
  if (!step_together(state.options.config))
    return;
  const std::string text = "learner " + std::to_string(lost) + " is lost: " + reason;
  if (state.rendezvous) {
    self->send_exit(*state.rendezvous, caf::exit_reason::user_shutdown);
    state.rendezvous.reset();
  }
  for (const auto& [key, handles] : state.handles)
    if (key.first == Role::learner && key.second != lost && handles.process)
      caf::anon_send(handles.process, lost_atom_v, text);
}

} // namespace troupe::actors::supervision
