#include "actors/supervisor_actor.hpp"

#include <algorithm>

#include "actors/node_info.hpp"
#include "actors/parameter_actor.hpp"
#include "actors/supervisor_nodes.hpp"
#include "actors/system.hpp"

namespace troupe::actors {

using namespace supervision;

const char* SupervisorState::name = "supervisor";

namespace {

constexpr std::chrono::milliseconds kPeriod{200};
constexpr int kPatience = 100;             // ticks: 20 s for everybody to leave
constexpr std::int64_t kLongestPause = 50; // ticks: 10 s before a restart
constexpr std::int64_t kLongestLeave = 50; // ticks: 10 s, then it is killed

/// Whether it is this life of one of ours.
std::optional<Key> key_of(const SupervisorState& state, const wire::Life& life) {
  const Key key{role_named(life.role()), life.index()};
  const auto at = state.children.find(key);
  if (at == state.children.end() || life.epoch() != state.options.epoch
      || life.incarnation() != at->second.incarnation)
    return std::nullopt;
  return key;
}

void enter(const SupervisorState& state, SupervisorState::Child& child, Phase phase) {
  child.phase = phase;
  child.since = state.now;
}

void leave(Self self, const Key& key) {
  auto& state = self->state;
  auto& child = state.children.at(key);
  enter(state, child, Phase::absent);
  child.who = nullptr;
  child.process = nullptr;
  child.waiting = false;
  child.id = 0;
  if (const auto at = state.nodes.find(child.node); at != state.nodes.end())
    self->send(at->second.actor, stop_atom_v, static_cast<std::uint8_t>(key.first), key.second);
  if (state.placer)
    state.placer->release(role_name(key.first), key.second);
  if (auto answer = std::exchange(child.on_left, {}))
    answer->deliver(done_atom_v);
}

/// It ends its work and its process by itself; one that takes too long is killed.
caf::result<done_atom> leave_in_order(Self self, const Key& key) {
  auto& state = self->state;
  const auto at = state.children.find(key);
  if (at == state.children.end())
    return done_atom_v;
  auto& child = at->second;
  if (child.phase == Phase::up && child.process) {
    enter(state, child, Phase::leaving);
    child.leave_by = state.now + kLongestLeave;
    self->send_exit(child.who, caf::exit_reason::user_shutdown);
  }
  if (child.phase != Phase::leaving) {
    leave(self, key);
    return done_atom_v;
  }
  auto promise = self->make_response_promise<done_atom>();
  child.on_left = promise;
  return promise;
}

bool replaceable(const SupervisorState& state, Role role, bool failed) {
  if (role == Role::environment || role == Role::evaluator || role == Role::parameter_server)
    return true;
  return in_processes(state) && !failed; // what it computed would fail again
}

/// Whether one more restart is within the budget; then it is counted, and comes a little later than
/// the one before.
bool may_restart(SupervisorState& state, SupervisorState::Child& child) {
  const auto& supervision = state.options.config.supervision;
  while (!child.deaths.empty()
         && child.deaths.front() < state.now - ticks(60 * supervision.restart_minutes))
    child.deaths.pop_front();
  const auto before = std::ssize(child.deaths);
  child.deaths.push_back(state.now);
  const std::int64_t pause =
      before == 0 ? 0
                  : std::min(kLongestPause, std::int64_t{1} << std::min<std::int64_t>(before, 8));
  child.not_before = state.now + pause;
  return before < state.options.config.actors.restarts;
}

} // namespace

void supervision::lost(Self self, const Key& key, std::string reason, bool failed) {
  auto& state = self->state;
  const auto at = state.children.find(key);
  if (at == state.children.end() || state.stopping || at->second.phase == Phase::absent)
    return; // told already
  const bool as_told = at->second.phase == Phase::leaving;
  leave(self, key);
  if (as_told)
    return;
  if (key.first == Role::learner)
    free_learners(self, key.second, reason);
  bool restart = replaceable(state, key.first, failed);
  if (restart && !may_restart(state, at->second)) {
    restart = false;
    if (const auto deaths = std::ssize(at->second.deaths); deaths > 1)
      reason += "; that is death " + std::to_string(deaths) + " within "
                + number(state.options.config.supervision.restart_minutes)
                + " minutes, actors.restarts allows " + std::to_string(deaths - 1);
  }
  caf::anon_send(state.options.listener, lost_atom_v, static_cast<std::uint8_t>(key.first),
                 key.second, reason, restart);
}

namespace {

void watch(Self self, const Key& key, const caf::actor& who) {
  self->monitor(who);
  auto& child = self->state.children[key];
  child.who = who;
  enter(self->state, child, Phase::up);
  child.heard = self->state.now;
  caf::anon_send(self->state.options.listener, started_atom_v, static_cast<std::uint8_t>(key.first),
                 key.second, who);
}

void start(Self self, const Key& key) {
  auto& state = self->state;
  if (in_processes(state)) {
    start_process(self, key);
    return;
  }
  const caf::actor who =
      spawn_role(self->system(), state.options.config, key.first, wiring_here(state, key));
  if (key.first == Role::replay)
    state.shards.push_back(caf::actor_cast<ReplayActor>(who));
  if (key.first == Role::parameter_server) { // up when its endpoint is known
    self->monitor(who);
    state.children[key].who = who; // how it ended its down message says
    self->request(who, kRequestDeadline, hello_atom_v)
        .then(
            [self, key, who](const std::string& endpoint) {
              self->state.server_endpoints.at(static_cast<std::size_t>(key.second)) = endpoint;
              self->demonitor(who.address());
              watch(self, key, who);
            },
            [self, key](const caf::error& error) {
              if (error == caf::sec::request_timeout)
                lost(self, key, explain(self->system(), error));
            });
    return;
  }
  watch(self, key, who);
  if ((key.first == Role::environment || key.first == Role::evaluator) && state.parameters)
    self->send(*state.parameters, subscribe_atom_v, who);
}

caf::result<Encoded> greet(Self self, const wire::Life& life) {
  auto& state = self->state;
  const auto key = key_of(state, life);
  if (!key || state.children.at(*key).phase != Phase::starting)
    return caf::make_error(Fault::bad_request, "nobody waits for this life of " + life.role() + " "
                                                   + std::to_string(life.index()));
  return encode(wiring_of(state, *key));
}

caf::result<Encoded> ask_rendezvous(Self self, const wire::Life& life, const Encoded& request) {
  const auto& state = self->state;
  const auto key = key_of(state, life);
  if (!key || key->first != Role::learner || !state.rendezvous)
    return caf::make_error(Fault::bad_request, "this life of " + life.role() + " "
                                                   + std::to_string(life.index())
                                                   + " meets nobody here");
  return self->delegate(*state.rendezvous, store_atom_v, request);
}

/// Their connections with parameter servers are for life.
void lose_learners(Self self, const std::string& why) {
  for (int i = 0; i < self->state.options.config.learner.replicas; ++i)
    lost(self, {Role::learner, i}, why);
}

void joined(Self self, const wire::Life& life, const caf::actor& who, const caf::actor& process,
            const std::string& endpoint) {
  auto& state = self->state;
  const auto key = key_of(state, life);
  if (!key || state.stopping || state.children.at(*key).phase != Phase::starting) {
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
      lose_learners(self, "parameter server " + std::to_string(index) + " is elsewhere now");
  } else if (key->first == Role::learner && index == 0) {
    state.parameter_endpoint = endpoint;
  }
  state.children.at(*key).process = process;
  state.children.at(*key).id = life.process();
  watch(self, *key, who);
  if (life.incarnation() > 0
      && (key->first == Role::replay || (key->first == Role::learner && index == 0)))
    tell_others(self, key->first);
  if (is_connected(key->first, Role::replay) || is_connected(key->first, Role::learner))
    caf::anon_send(process, wire_atom_v,
                   encode(wiring_of(state, *key))); // who moved since it began
}

void take_beat(Self self, const wire::Life& life, const caf::actor& process) {
  const auto key = key_of(self->state, life);
  if (!key || self->state.children.at(*key).phase == Phase::absent) {
    caf::anon_send(process, stop_atom_v); // we have given it up
    return;
  }
  self->state.children.at(*key).heard = self->state.now;
  caf::anon_send(process, beat_atom_v);
}

void stop(Self self) {
  auto& state = self->state;
  state.stopping = true;
  state.patience = kPatience;
  for (auto& [key, child] : state.children)
    if (child.who)
      self->send_exit(child.who, caf::exit_reason::user_shutdown);
  if (state.parameters)
    self->send_exit(*state.parameters, caf::exit_reason::user_shutdown);
  stop_nodes(self);
}

bool all_gone(const SupervisorState& state) {
  if (state.nodes_left > 0)
    return false;
  for (const auto& [key, child] : state.children)
    if (child.phase == Phase::up)
      return false;
  return true;
}

void try_start(Self self, const Key& key) {
  try {
    start(self, key);
  } catch (const std::exception& e) {
    lost(self, key, e.what());
  }
}

void look_after(Self self, const Key& key) {
  auto& state = self->state;
  auto& child = state.children.at(key);
  if (child.waiting && state.now >= child.not_before) {
    child.waiting = false;
    try_start(self, key);
  }
  if (child.phase == Phase::leaving && state.now > child.leave_by)
    leave(self, key);
  const double patience = state.options.config.supervision.lost_seconds;
  if (child.phase == Phase::up && child.process && state.now - child.heard > ticks(patience))
    lost(self, key, "its process gave no sign of life for " + number(patience) + " s");
}

void tick(Self self) {
  auto& state = self->state;
  ++state.now;
  if (state.stopping && (all_gone(state) || --state.patience < 0)) {
    for (auto& promise : state.stoppers)
      promise.deliver(done_atom_v);
    state.stoppers.clear();
    return;
  }
  std::vector<Key> keys;
  for (const auto& [key, child] : state.children)
    keys.push_back(key);
  if (!state.stopping) {
    watch_nodes(self);
    for (const Key& key : keys)
      look_after(self, key);
  }
  self->delayed_send(self, kPeriod, tick_atom_v);
}

std::string why_down(Self self, const caf::error& reason) {
  if (reason == caf::exit_reason::remote_link_unreachable)
    return "the connection to its process broke";
  return explain(self->system(), reason);
}

void on_down(Self self, const caf::down_msg& down) {
  if (node_is_down(self, down.source, why_down(self, down.reason)))
    return;
  for (auto& [key, child] : self->state.children)
    if (child.who && child.who.address() == down.source) {
      if (self->state.stopping)
        child.phase = Phase::absent;
      else if (child.phase != Phase::leaving) // its node tells when its process is gone
        lost(self, key, why_down(self, down.reason), down.reason == Fault::failed);
      return;
    }
}

/// Decodes what a process said and does it; what is none of ours is passed over.
template <class Body>
void guarded(const Encoded& encoded, const Body& body) {
  try {
    body(decode<wire::Life>(encoded));
  } catch (const std::exception&) {
  }
}

} // namespace

SupervisorActor::behavior_type supervisor_actor(Self self, SupervisorOptions options) {
  auto& state = self->state;
  state.options = std::move(options);
  state.server_endpoints.resize(
      static_cast<std::size_t>(role_count(state.options.config, Role::parameter_server)));
  if (in_processes(state))
    begin_nodes(self);
  else
    state.parameters = self->spawn(parameter_actor, std::function<void(const Parameters&)>());
  self->set_down_handler([self](caf::down_msg& down) { on_down(self, down); });
  self->set_exit_handler([self](caf::exit_msg& why) {
    for (auto& [name, node] : self->state.nodes)
      self->send_exit(node.actor, why.reason);
    if (self->state.rendezvous)
      self->send_exit(*self->state.rendezvous, why.reason);
    self->quit(std::move(why.reason));
  });
  self->delayed_send(self, kPeriod, tick_atom_v);
  return {
      [self](spawn_atom, std::uint8_t role, std::int32_t index, std::uint64_t incarnation,
             std::int64_t steps_before) {
        const Key key{static_cast<Role>(role), index};
        if (key.first == Role::learner)
          open_rendezvous(self);
        auto& child = self->state.children[key];
        child.incarnation = incarnation;
        child.steps_before = steps_before;
        enter(self->state, child, Phase::starting);
        child.waiting = child.not_before > self->state.now;
        if (!child.waiting)
          try_start(self, key);
      },
      [self](stop_atom, std::uint8_t role, std::int32_t index) {
        const Key key{static_cast<Role>(role), index};
        if (self->state.children.contains(key))
          leave(self, key);
      },
      [self](leave_atom, std::uint8_t role, std::int32_t index) {
        return leave_in_order(self, {static_cast<Role>(role), index});
      },
      [self](scale_atom, std::int32_t count) { return scale_environments(self, count); },
      [self](control_atom, const Encoded& request) -> caf::result<Encoded> {
        if (!self->state.options.control)
          return caf::make_error(Fault::bad_request,
                                 std::string("this run is in one process, which serves nobody"));
        return self->delegate(*self->state.options.control, control_atom_v, request,
                              encode(supervisor_report(self->state)));
      },
      [self](hello_atom, const Encoded& life) -> caf::result<Encoded> {
        try {
          return greet(self, decode<wire::Life>(life));
        } catch (const std::exception& e) {
          return failure(e);
        }
      },
      [self](joined_atom, const Encoded& encoded, const caf::actor& who, const caf::actor& process,
             const std::string& endpoint) {
        guarded(encoded,
                [&](const wire::Life& life) { joined(self, life, who, process, endpoint); });
      },
      [self](beat_atom, const Encoded& encoded, const caf::actor& process) {
        guarded(encoded, [&](const wire::Life& life) { take_beat(self, life, process); });
      },
      [self](store_atom, const Encoded& life, const Encoded& request) -> caf::result<Encoded> {
        try {
          return ask_rendezvous(self, decode<wire::Life>(life), request);
        } catch (const std::exception& e) {
          return failure(e);
        }
      },
      [self](lost_atom, const Encoded& encoded, const std::string& how) {
        guarded(encoded, [&](const wire::Life& life) {
          if (const auto key = key_of(self->state, life))
            lost(self, *key, how);
        });
      },
      [self](node_atom, const Encoded& info, const caf::actor& node,
             const caf::actor& agent) -> caf::result<Encoded> {
        try {
          return join_node(self, decode<wire::NodeInfo>(info), node, agent);
        } catch (const std::exception& e) {
          return failure(e);
        }
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
