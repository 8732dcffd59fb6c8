#include "actors/supervisor_actor.hpp"

#include <csignal>
#include <sys/wait.h>

#include "actors/parameter_actor.hpp"
#include "actors/strategies.hpp"
#include "actors/system.hpp"

namespace troupe::actors {

const char* SupervisorState::name = "supervisor";

namespace {

using Self = SupervisorActor::stateful_pointer<SupervisorState>;
using Key = std::pair<Role, std::int32_t>;
constexpr std::chrono::milliseconds kPeriod{200};
constexpr int kPatience = 50; // ticks: 10 s for a process to leave by itself

bool in_processes(const SupervisorState& state) {
  return state.options.head_port != 0;
}

void lost(Self self, const Key& key, const std::string& reason) {
  auto& state = self->state;
  const auto at = state.children.find(key);
  if (at == state.children.end() || state.stopping)
    return;
  auto& child = at->second;
  if (child.phase == SupervisorState::Phase::absent)
    return; // told already
  if (child.process > 0) {
    ::kill(child.process, SIGKILL);
    state.leaving.push_back(child.process);
  }
  child.process = 0;
  child.who = nullptr;
  child.phase = SupervisorState::Phase::absent;
  const bool replaceable = key.first == Role::environment || key.first == Role::evaluator
                           || key.first == Role::parameter_server;
  const bool restart = replaceable && child.restarts < state.options.config.actors.restarts;
  if (restart)
    ++child.restarts;
  caf::anon_send(state.options.listener, lost_atom_v, static_cast<std::uint8_t>(key.first),
                 key.second, reason, restart);
}

void watch(Self self, const Key& key, const caf::actor& who) {
  self->monitor(who);
  auto& child = self->state.children[key];
  child.who = who;
  child.phase = SupervisorState::Phase::up;
  caf::anon_send(self->state.options.listener, started_atom_v, static_cast<std::uint8_t>(key.first),
                 key.second, who);
}

RoleWiring wiring_here(SupervisorState& state, const Key& key) {
  RoleWiring wiring;
  wiring.index = key.second;
  wiring.incarnation = state.children[key].incarnation;
  wiring.steps_before = state.children[key].steps_before;
  wiring.transitions = state.options.transitions;
  wiring.shards = state.shards;
  if (key.first == Role::parameter_server) {
    if (!state.context)
      state.context = std::make_shared<env::wire::Context>();
    wiring.context = state.context;
    wiring.endpoint = state.server_endpoints.at(static_cast<std::size_t>(key.second));
  }
  if (key.first == Role::learner) {
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

void start(Self self, const Key& key) {
  auto& state = self->state;
  if (in_processes(state)) {
    state.children[key].process = state.options.placement.start_node(
        role_name(key.first), key.second, state.options.head_port);
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

caf::result<Encoded> greet(Self self, const std::string& role, std::int32_t index) {
  auto& state = self->state;
  const auto at = state.children.find({role_named(role), index});
  if (at == state.children.end() || at->second.phase != SupervisorState::Phase::starting)
    return caf::make_error(Fault::bad_request,
                           "nobody waits for a process as " + role + " " + std::to_string(index));
  wire::Wiring wiring;
  for (const auto& endpoint : state.shard_endpoints)
    wiring.add_shard_endpoints(endpoint);
  wiring.set_parameter_endpoint(state.parameter_endpoint);
  for (const auto& endpoint : state.server_endpoints)
    wiring.add_server_endpoints(endpoint);
  wiring.set_collective_port(state.options.collective_port);
  wiring.set_incarnation(at->second.incarnation);
  wiring.set_done_steps(at->second.steps_before);
  return encode(wiring);
}

void joined(Self self, const std::string& role, std::int32_t index, const caf::actor& who,
            const std::string& endpoint) {
  auto& state = self->state;
  const Key key{role_named(role), index};
  if (!state.children.contains(key) || state.stopping) {
    self->send_exit(who, caf::exit_reason::user_shutdown);
    return;
  }
  if (key.first == Role::replay) {
    state.shard_endpoints.resize(static_cast<std::size_t>(state.options.config.replay.shards));
    state.shard_endpoints.at(static_cast<std::size_t>(index)) = endpoint;
  } else if (key.first == Role::parameter_server) {
    state.server_endpoints.at(static_cast<std::size_t>(index)) = endpoint;
  } else if (key.first == Role::learner && index == 0) {
    state.parameter_endpoint = endpoint;
  }
  watch(self, key, who);
}

/// Collects processes that ended; one that was not told to is lost.
void reap(Self self) {
  auto& state = self->state;
  std::erase_if(state.leaving,
                [](int process) { return ::waitpid(process, nullptr, WNOHANG) != 0; });
  for (auto& [key, child] : state.children) {
    int status = 0;
    if (child.process > 0 && ::waitpid(child.process, &status, WNOHANG) == child.process) {
      child.process = 0;
      const std::string how = WIFSIGNALED(status)
                                  ? "killed by signal " + std::to_string(WTERMSIG(status))
                                  : "exit code " + std::to_string(WEXITSTATUS(status));
      lost(self, key, "its process ended (" + how + ")");
    }
  }
}

void stop(Self self) {
  auto& state = self->state;
  state.stopping = true;
  state.patience = kPatience;
  for (auto& [key, child] : state.children) {
    if (child.who)
      self->send_exit(child.who, caf::exit_reason::user_shutdown);
    if (child.process > 0)
      state.leaving.push_back(child.process);
    child.process = 0;
  }
  if (state.parameters)
    self->send_exit(*state.parameters, caf::exit_reason::user_shutdown);
}

bool all_gone(const SupervisorState& state) {
  if (!state.leaving.empty())
    return false;
  for (const auto& [key, child] : state.children)
    if (child.phase == SupervisorState::Phase::up)
      return false;
  return true;
}

void tick(Self self) {
  auto& state = self->state;
  reap(self);
  if (state.stopping && --state.patience == 0)
    for (const int process : state.leaving)
      ::kill(process, SIGKILL);
  if (state.stopping && (all_gone(state) || state.patience < -kPatience)) {
    for (auto& promise : state.stoppers)
      promise.deliver(done_atom_v);
    state.stoppers.clear();
    return;
  }
  self->delayed_send(self, kPeriod, tick_atom_v);
}

} // namespace

SupervisorActor::behavior_type supervisor_actor(Self self, SupervisorOptions options) {
  auto& state = self->state;
  state.options = std::move(options);
  state.server_endpoints.resize(
      static_cast<std::size_t>(role_count(state.options.config, Role::parameter_server)));
  if (!in_processes(state))
    state.parameters = self->spawn(parameter_actor, std::function<void(const Parameters&)>());
  self->set_down_handler([self](caf::down_msg& down) {
    for (auto& [key, child] : self->state.children)
      if (child.who && child.who.address() == down.source) {
        if (self->state.stopping)
          child.phase = SupervisorState::Phase::absent;
        else
          lost(self, key, explain(self->system(), down.reason));
        return;
      }
  });
  self->delayed_send(self, kPeriod, tick_atom_v);
  return {
      [self](spawn_atom, std::uint8_t role, std::int32_t index, std::uint64_t incarnation,
             std::int64_t steps_before) {
        const Key key{static_cast<Role>(role), index};
        auto& child = self->state.children[key];
        child.incarnation = incarnation;
        child.steps_before = steps_before;
        child.phase = SupervisorState::Phase::starting;
        try {
          start(self, key);
        } catch (const std::exception& e) {
          lost(self, key, e.what());
        }
      },
      [self](hello_atom, const std::string& role, std::int32_t index) -> caf::result<Encoded> {
        try {
          return greet(self, role, index);
        } catch (const std::exception& e) {
          return failure(e);
        }
      },
      [self](joined_atom, const std::string& role, std::int32_t index, const caf::actor& who,
             const std::string& endpoint) {
        try {
          joined(self, role, index, who, endpoint);
        } catch (const std::exception&) { // a stranger's role: it is not let in
          self->send_exit(who, caf::exit_reason::user_shutdown);
        }
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
