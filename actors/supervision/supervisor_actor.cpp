#include "actors/supervision/supervisor_actor.hpp"

#include "actors/protocol/system.hpp"
#include "actors/roles/parameter_actor.hpp"
#include "actors/supervision/supervisor_parts.hpp"

namespace troupe::actors {

using namespace supervision;

const char* SupervisorState::name = "supervisor";

namespace {

constexpr std::chrono::milliseconds kSupervisorPeriod{1000 / kTicksPerSecond};
constexpr std::int64_t kStopPatience = 20 * kTicksPerSecond; // time for all actors to stop

/// Removes an actor: ends its process and frees its place.
void remove(Self self, const ActorKey& key) {
  auto& state = self->state;
  state.processes.remove(key);
  auto handles = std::exchange(state.handles[key], {});
  const auto node = state.node_handles.find(state.processes.at(key).node);
  if (node != state.node_handles.end())
    self->send(node->second.actor, stop_atom_v, key.first, key.second);
  if (handles.process) // its node may be frozen or out of reach
    caf::anon_send(handles.process, stop_atom_v);
  if (state.nodes)
    state.nodes->release(role_name(key.first), key.second);
  if (handles.on_left)
    handles.on_left->deliver(done_atom_v);
}

/// Lets an actor finish its work and end its process by itself; kills it if it takes too long.
caf::result<done_atom> leave_in_order(Self self, const ActorKey& key) {
  auto& state = self->state;
  if (!state.processes.contains(key))
    return done_atom_v;
  if (!state.processes.leave(key)) {
    remove(self, key);
    return done_atom_v;
  }
  auto& handles = state.handles.at(key);
  self->send_exit(handles.actor, caf::exit_reason::user_shutdown);
  auto promise = self->make_response_promise<done_atom>();
  handles.on_left = promise;
  return promise;
}

} // namespace

std::optional<ActorKey> supervision::key_of(const SupervisorState& state, const wire::Life& life) {
  const ActorKey key{role_named(life.role()), life.index()};
  if (!state.processes.contains(key) || life.epoch() != state.options.epoch
      || life.incarnation() != state.processes.at(key).incarnation)
    return std::nullopt;
  return key;
}

void supervision::lose(Self self, const ActorKey& key, const std::string& reason, bool failed) {
  auto& state = self->state;
  const auto phase = state.processes.phase(key);
  if (state.stopping || phase == Phase::absent)
    return; // already reported
  remove(self, key);
  if (phase == Phase::leaving)
    return; // it was asked to leave
  if (key.first == Role::learner)
    free_learners(self, key.second, reason);
  const auto death = state.processes.die(key, reason, failed);
  caf::anon_send(state.options.listener, lost_atom_v, key.first, key.second, death.reason,
                 death.restart);
}

namespace {

void watch(Self self, const ActorKey& key, const caf::actor& who, const std::string& endpoint = {},
           int process = 0) {
  auto& state = self->state;
  self->monitor(who);
  state.handles[key].actor = who;
  state.processes.up(key, process);
  caf::anon_send(state.options.listener, started_atom_v, key.first, key.second, who, endpoint,
                 static_cast<std::int32_t>(process));
}

void start(Self self, const ActorKey& key) {
  auto& state = self->state;
  if (in_processes(state)) {
    start_process(self, key);
    return;
  }
  const caf::actor who =
      spawn_role(self->system(), state.options.config, key.first, wiring_here(state, key));
  if (key.first == Role::replay)
    state.shards.push_back(caf::actor_cast<ReplayActor>(who));
  if (key.first == Role::parameter_server) { // up once its endpoint is known
    self->monitor(who);
    state.handles[key].actor = who; // its down message gives the reason if it ends
    self->request(who, kRequestDeadline, hello_atom_v)
        .then(
            [self, key, who](const std::string& endpoint) {
              self->state.server_endpoints.at(static_cast<std::size_t>(key.second)) = endpoint;
              self->demonitor(who.address());
              watch(self, key, who);
            },
            [self, key](const caf::error& error) {
              if (error == caf::sec::request_timeout)
                lose(self, key, explain(self->system(), error));
            });
    return;
  }
  watch(self, key, who);
  if ((key.first == Role::environment || key.first == Role::evaluator) && state.parameters)
    self->send(*state.parameters, subscribe_atom_v, who);
}

caf::result<ProtoBytes> greet(Self self, const wire::Life& life) {
  auto& state = self->state;
  const auto key = key_of(state, life);
  if (!key || state.processes.phase(*key) != Phase::starting)
    return caf::make_error(Fault::bad_request, "this life of " + life.role() + " "
                                                   + std::to_string(life.index())
                                                   + " is not expected");
  return encode(wiring_of(state, *key));
}

caf::result<ProtoBytes> ask_rendezvous(Self self, const wire::Life& life,
                                       const ProtoBytes& request) {
  const auto& state = self->state;
  const auto key = key_of(state, life);
  if (!key || key->first != Role::learner || !state.rendezvous)
    return caf::make_error(Fault::bad_request, "this life of " + life.role() + " "
                                                   + std::to_string(life.index())
                                                   + " has no rendezvous");
  return self->delegate(*state.rendezvous, store_atom_v, request);
}

/// Gives all learners up, because their connections to parameter servers cannot change.
void lose_learners(Self self, const std::string& why) {
  for (int i = 0; i < self->state.options.config.learner.replicas; ++i)
    lose(self, {Role::learner, i}, why);
}

void joined(Self self, const wire::Life& life, const caf::actor& who, const caf::actor& process,
            const std::string& endpoint) {
  auto& state = self->state;
  const auto key = key_of(state, life);
  if (!key || state.stopping || state.processes.phase(*key) != Phase::starting) {
    self->send_exit(who, caf::exit_reason::user_shutdown);
    return;
  }
  const auto index = static_cast<std::size_t>(key->second);
  if (key->first == Role::replay) {
    state.shard_endpoints.resize(static_cast<std::size_t>(state.options.config.replay.shards));
    state.shard_endpoints.at(index) = endpoint;
  } else if (key->first == Role::parameter_server) {
    if (std::exchange(state.server_endpoints.at(index), endpoint) != endpoint
        && life.incarnation() > 0)
      lose_learners(self, "parameter server " + std::to_string(index) + " has moved");
  } else if (key->first == Role::learner && index == 0) {
    state.parameter_endpoint = endpoint;
  }
  state.handles[*key].process = process;
  if (state.processes.at(*key).come_by > 0)
    adopt_process(self, *key, life);
  watch(self, *key, who, endpoint, life.process());
  if (life.incarnation() > 0
      && (key->first == Role::replay || (key->first == Role::learner && index == 0)))
    announce(self, key->first);
  if (is_connected(key->first, Role::replay) || is_connected(key->first, Role::learner))
    caf::anon_send(process, wire_atom_v,
                   encode(wiring_of(state, *key))); // actors may have moved since its greeting
}

void stop(Self self) {
  auto& state = self->state;
  state.stopping = true;
  state.stop_by = state.processes.now() + kStopPatience;
  for (auto& [key, handles] : state.handles)
    if (handles.actor)
      self->send_exit(handles.actor, caf::exit_reason::user_shutdown);
  if (state.parameters)
    self->send_exit(*state.parameters, caf::exit_reason::user_shutdown);
  stop_nodes(self);
}

void try_start(Self self, const ActorKey& key) {
  try {
    start(self, key);
  } catch (const std::exception& e) {
    lose(self, key, e.what());
  }
}

void look_after(Self self, const ActorKey& key) {
  if (process_has_ended(self->state, key))
    return lose(self, key, "its process ended while there was no head");
  switch (self->state.processes.due(key)) {
  case ProcessTable::Due::start:
    return try_start(self, key);
  case ProcessTable::Due::kill:
    return remove(self, key);
  case ProcessTable::Due::missing:
    return lose(self, key,
                "its process did not join the new head within "
                    + number(self->state.options.config.supervision.lost_seconds) + " s");
  case ProcessTable::Due::nothing:
    return;
  }
}

void tick(Self self) {
  auto& state = self->state;
  state.processes.tick();
  if (state.stopping
      && ((state.nodes_left == 0 && !state.processes.any_up())
          || state.processes.now() > state.stop_by)) {
    for (auto& promise : state.stoppers)
      promise.deliver(done_atom_v);
    state.stoppers.clear();
    return;
  }
  if (!state.stopping) {
    watch_nodes(self);
    std::vector<ActorKey> keys;
    for (const auto& [key, process] : state.processes.all())
      keys.push_back(key);
    for (const ActorKey& key : keys)
      look_after(self, key);
  }
  self->delayed_send(self, kSupervisorPeriod, tick_atom_v);
}

std::string why_down(Self self, const caf::error& reason) {
  if (reason == caf::exit_reason::remote_link_unreachable)
    return "the connection to its process broke";
  return explain(self->system(), reason);
}

void on_down(Self self, const caf::down_msg& down) {
  if (node_is_down(self, down.source, why_down(self, down.reason)))
    return;
  auto& state = self->state;
  for (auto& [key, handles] : state.handles)
    if (handles.actor && handles.actor.address() == down.source) {
      if (state.stopping)
        state.processes.remove(key);
      else if (state.processes.phase(key) != Phase::leaving) // its node reports its process's end
        lose(self, ActorKey(key), why_down(self, down.reason), down.reason == Fault::failed);
      return;
    }
}

/// Calls `body` with the life that a process sent. Ignores bytes that are not a valid life.
template <class Body>
void guarded(const ProtoBytes& encoded, const Body& body) {
  try {
    body(decode<wire::Life>(encoded));
  } catch (const std::exception&) {
  }
}

} // namespace

SupervisorActor::behavior_type supervisor_actor(Self self, SupervisorOptions options) {
  auto& state = self->state;
  state.options = std::move(options);
  const auto& config = state.options.config;
  state.processes = ProcessTable({.restarts = config.actors.restarts,
                                  .restart_minutes = config.supervision.restart_minutes,
                                  .lost_seconds = config.supervision.lost_seconds,
                                  .own_processes = in_processes(state)});
  state.server_endpoints.resize(
      static_cast<std::size_t>(role_count(config, Role::parameter_server)));
  if (in_processes(state))
    begin_nodes(self);
  else
    state.parameters = self->spawn(parameter_actor, std::function<void(const Parameters&)>());
  if (state.options.succeeds)
    expect_processes(self, *state.options.succeeds);
  self->set_down_handler([self](caf::down_msg& down) { on_down(self, down); });
  self->set_exit_handler([self](caf::exit_msg& why) {
    for (auto& [name, node] : self->state.node_handles)
      self->send_exit(node.actor, why.reason);
    if (self->state.rendezvous)
      self->send_exit(*self->state.rendezvous, why.reason);
    self->quit(std::move(why.reason));
  });
  self->delayed_send(self, kSupervisorPeriod, tick_atom_v);
  return {
      [self](spawn_atom, Role role, std::int32_t index, std::uint64_t incarnation,
             std::int64_t steps_before) {
        const ActorKey key{role, index};
        if (key.first == Role::learner)
          open_rendezvous(self);
        if (self->state.processes.spawn(key, incarnation, steps_before))
          try_start(self, key);
      },
      [self](stop_atom, Role role, std::int32_t index) {
        const ActorKey key{role, index};
        if (self->state.processes.contains(key))
          remove(self, key);
      },
      [self](leave_atom, Role role, std::int32_t index) {
        return leave_in_order(self, {role, index});
      },
      [self](scale_atom, std::int32_t count) { return scale_environments(self, count); },
      [self](control_atom, const ProtoBytes& request) -> caf::result<ProtoBytes> {
        if (!self->state.options.control)
          return caf::make_error(
              Fault::bad_request,
              std::string("this run uses one process, which serves no requests"));
        return self->delegate(*self->state.options.control, control_atom_v, request,
                              encode(supervisor_report(self->state)));
      },
      [self](hello_atom, const ProtoBytes& life) {
        return answer_or_fault([&] { return greet(self, decode<wire::Life>(life)); });
      },
      [self](joined_atom, const ProtoBytes& encoded, const caf::actor& who,
             const caf::actor& process, const std::string& endpoint) {
        guarded(encoded,
                [&](const wire::Life& life) { joined(self, life, who, process, endpoint); });
      },
      [self](store_atom, const ProtoBytes& life, const ProtoBytes& request) {
        return answer_or_fault(
            [&] { return ask_rendezvous(self, decode<wire::Life>(life), request); });
      },
      [self](lost_atom, const ProtoBytes& encoded, const std::string& how) {
        guarded(encoded, [&](const wire::Life& life) {
          if (const auto key = key_of(self->state, life))
            lose(self, *key, how);
        });
      },
      [self](node_atom, const ProtoBytes& info, const caf::actor& node, const caf::actor& agent) {
        return answer_or_fault(
            [&] { return join_node(self, decode<wire::NodeInfo>(info), node, agent); });
      },
      [self](node_atom, const std::string& name, std::uint64_t life, const caf::actor& agent) {
        take_node_beat(self, name, life, agent);
      },
      [self](tick_atom) { tick(self); },
      [self](stop_atom) -> caf::result<done_atom> {
        auto promise = self->make_response_promise<done_atom>();
        self->state.stoppers.push_back(promise);
        stop(self);
        return promise;
      },
  };
}

} // namespace troupe::actors
