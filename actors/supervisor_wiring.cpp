#include <algorithm>

#include "actors/rendezvous_actor.hpp"
#include "actors/strategies.hpp"
#include "actors/supervisor_nodes.hpp"

namespace troupe::actors::supervision {

bool in_processes(const SupervisorState& state) {
  return state.options.head_port != 0;
}

RoleWiring wiring_here(SupervisorState& state, const Key& key) {
  RoleWiring wiring;
  wiring.index = key.second;
  wiring.incarnation = state.children[key].incarnation;
  wiring.steps_before = state.children[key].steps_before;
  wiring.environments = state.options.config.actors.environment;
  wiring.transitions = state.options.transitions;
  wiring.shards = state.shards;
  if (key.first == Role::parameter_server) {
    if (!state.context)
      state.context = std::make_shared<env::wire::Context>();
    wiring.context = state.context;
    wiring.endpoint = state.server_endpoints.at(static_cast<std::size_t>(key.second));
  }
  if (key.first == Role::learner) {
    wiring.device = device_of_learner(state.options.config, false, key.second);
    if (key.second == 0)
      wiring.parameters = state.parameters;
    if (has_strategy(state.options.config)) {
      if (!state.strategy)
        state.strategy = learner::make_strategy(
            strategy_of(state.options.config, false, state.server_endpoints));
      wiring.strategy = [own = state.strategy] { return own; };
      wiring.local_id = key.second;
    }
  }
  return wiring;
}

void open_rendezvous(Self self) {
  auto& state = self->state;
  const bool first = std::none_of(state.children.begin(), state.children.end(), [](const auto& c) {
    return c.first.first == Role::learner && c.second.phase != Phase::absent;
  });
  if (!in_processes(state) || (!first && state.rendezvous))
    return;
  if (state.rendezvous)
    self->send_exit(*state.rendezvous, caf::exit_reason::user_shutdown);
  state.rendezvous = self->spawn(rendezvous_actor);
}

wire::Wiring wiring_of(SupervisorState& state, const Key& key) {
  const auto& child = state.children.at(key);
  const auto& supervision = state.options.config.supervision;
  wire::Wiring wiring;
  for (const auto& endpoint : state.shard_endpoints)
    wiring.add_shard_endpoints(endpoint);
  wiring.set_parameter_endpoint(state.parameter_endpoint);
  for (const auto& endpoint : state.server_endpoints)
    wiring.add_server_endpoints(endpoint);
  wiring.set_incarnation(child.incarnation);
  wiring.set_done_steps(child.steps_before);
  wiring.set_heartbeat_seconds(supervision.heartbeat_seconds);
  wiring.set_lost_seconds(supervision.lost_seconds);
  wiring.set_environments(state.options.config.actors.environment);
  add_learner_places(state, wiring);
  return wiring;
}

bool is_connected(Role role, Role other) {
  return role == Role::environment ? other == Role::replay || other == Role::learner
         : role == Role::learner   ? other == Role::replay
                                   : role == Role::evaluator && other == Role::learner;
}

void tell_others(Self self, Role moved) {
  for (const auto& [key, child] : self->state.children)
    if (is_connected(key.first, moved) && child.phase == Phase::up && child.process)
      caf::anon_send(child.process, wire_atom_v, encode(wiring_of(self->state, key)));
}

void free_learners(Self self, std::int32_t gone, const std::string& reason) {
  if (!step_together(self->state.options.config))
    return;
  const std::string words = "learner " + std::to_string(gone) + " is lost: " + reason;
  if (auto& met = self->state.rendezvous) { // who still meets there would wait for it
    self->send_exit(*met, caf::exit_reason::user_shutdown);
    met.reset();
  }
  for (const auto& [key, child] : self->state.children)
    if (key.first == Role::learner && key.second != gone && child.process)
      caf::anon_send(child.process, lost_atom_v, words);
}

} // namespace troupe::actors::supervision
