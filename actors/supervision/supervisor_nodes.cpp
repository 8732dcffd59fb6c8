#include "actors/protocol/system.hpp"
#include "actors/supervision/node_actor.hpp"
#include "actors/supervision/node_info.hpp"
#include "actors/supervision/supervisor_parts.hpp"

namespace troupe::actors::supervision {

namespace {

void lose_node(Self self, const std::string& name, const std::string& why) {
  auto& state = self->state;
  state.node_handles.erase(name);
  if (!state.nodes->remove(name))
    return;
  caf::anon_send(state.options.listener, node_atom_v, name, why);
  std::vector<ActorKey> lost;
  for (const auto& [key, process] : state.processes.all())
    if (process.node == name && process.phase != Phase::absent)
      lost.push_back(key);
  for (const ActorKey& key : lost)
    lose(self, key, "its node " + name + " " + why);
}

/// A process of a dead head, as its node lists it.
struct Living {
  wire::Life life;
  CoreSet cores;
  std::vector<int> gpus;
};

/// Throws std::invalid_argument if the list is malformed.
std::map<ActorKey, Living> living_processes(const wire::NodeInfo& info) {
  std::map<ActorKey, Living> living;
  for (const auto& one : info.living())
    living[{role_named(one.life().role()), one.life().index()}] = {
        .life = one.life(),
        .cores = one.cores().empty() ? CoreSet() : parse_core_set(one.cores()),
        .gpus = {one.gpus().begin(), one.gpus().end()}};
  return living;
}

/// Takes over the processes of a node that had joined the previous head, and stops the unknown
/// ones.
void take_over(Self self, const std::string& node, const std::map<ActorKey, Living>& living) {
  auto& state = self->state;
  for (const auto& [key, process] : living) {
    if (!key_of(state, process.life) || state.processes.phase(key) == Phase::absent) {
      self->send(state.node_handles.at(node).actor, stop_atom_v, key.first, key.second);
      continue;
    }
    state.processes.place(key, node);
    if (const auto problem = state.nodes->restore(role_name(key.first), key.second, node,
                                                  process.cores, process.gpus);
        !problem.empty())
      lose(self, key, problem);
  }
}

/// Once the previous head's nodes have joined: gives up the processes that none of them has listed.
void lose_ended(Self self) {
  std::vector<ActorKey> ended;
  for (const auto& [key, process] : self->state.processes.all())
    if (process.come_by > 0 && process.node.empty())
      ended.push_back(key);
  for (const ActorKey& key : ended)
    lose(self, key, "its process ended while there was no head");
}

std::map<std::string, int> role_counts(const RunConfig& config) {
  std::map<std::string, int> counts;
  for (const Role role : kRoles)
    counts[role_name(role)] = role_count(config, role);
  return counts;
}

} // namespace

void begin_nodes(Self self) {
  auto& state = self->state;
  const auto& deployment = state.options.deployment;
  if (deployment.nodes)
    state.nodes.emplace(deployment.nodes->placer,
                        ticks(state.options.succeeds ? state.options.config.supervision.lost_seconds
                                                     : deployment.nodes->join_seconds),
                        state.options.succeeds != nullptr);
  else
    state.node_handles[""].actor = self->spawn(
        node_actor, NodeOptions{.start_process = deployment.start_process,
                                .supervisor = SupervisorActor(self),
                                .lost_seconds = state.options.config.supervision.lost_seconds});
}

void start_process(Self self, const ActorKey& key) {
  auto& state = self->state;
  wire::ProcessStart order;
  auto& life = *order.mutable_life();
  life.set_role(role_name(key.first));
  life.set_index(key.second);
  life.set_epoch(state.options.epoch);
  life.set_incarnation(state.processes.at(key).incarnation);
  order.set_head_port(state.options.head_port);
  order.set_address("127.0.0.1");
  order.set_config(state.options.config_file);
  order.set_lost_seconds(state.options.config.supervision.lost_seconds);
  std::string node;
  if (state.nodes) {
    const Placing placing =
        state.nodes->place(role_name(key.first), key.second, state.options.config.learner.replicas);
    if (!placing)
      return state.processes.wait(key, placing.problem);
    node = placing.at->node;
    if (state.options.deployment.nodes->pin && !state.nodes->known().at(node).shares_cores)
      order.set_cores(core_set_text(placing.at->cores));
    order.mutable_gpus()->Assign(placing.at->gpus.begin(), placing.at->gpus.end());
    order.set_address(state.nodes->up().at(node).address);
  }
  state.processes.place(key, node);
  self->send(state.node_handles.at(node).actor, spawn_atom_v, encode(order));
}

caf::result<ProtoBytes> join_node(Self self, const wire::NodeInfo& info, const caf::actor& actor,
                                  const caf::actor& agent) {
  auto& state = self->state;
  if (!state.nodes || state.stopping)
    return caf::make_error(Fault::bad_request,
                           std::string("this run ") + (state.stopping ? "ends" : "has no nodes"));
  const NodeResources node = node_resources(info);
  const auto living = living_processes(info);
  if (info.epoch() != 0 && info.epoch() != state.options.epoch)
    return caf::make_error(Fault::bad_request,
                           std::string("another head leads the run now, with new processes"));
  const auto up = state.nodes->up().find(node.name);
  const bool asks_again = info.epoch() != 0 && up != state.nodes->up().end()
                          && up->second.life == info.life(); // our answer was lost
  if (!asks_again)
    lose_node(self, node.name, "came back");
  state.nodes->join(node, info.life(), state.processes.now());
  state.node_handles[node.name] = {.actor = caf::actor_cast<NodeActor>(actor), .agent = agent};
  self->monitor(agent);
  take_over(self, node.name, living);
  const auto& supervision = state.options.config.supervision;
  wire::NodeWelcome welcome;
  welcome.set_epoch(state.options.epoch);
  welcome.set_config(state.options.config_file);
  welcome.set_heartbeat_seconds(supervision.heartbeat_seconds);
  welcome.set_lost_seconds(supervision.lost_seconds);
  return encode(welcome);
}

void take_node_beat(Self self, const std::string& name, std::uint64_t life,
                    const caf::actor& agent) {
  auto& state = self->state;
  if (state.nodes && state.nodes->beat(name, life, state.processes.now()))
    caf::anon_send(agent, beat_atom_v);
  else
    caf::anon_send(agent, stop_atom_v); // that life was given up
}

bool node_is_down(Self self, const caf::actor_addr& who, const std::string& why) {
  for (const auto& [name, handles] : self->state.node_handles)
    if (handles.agent && handles.agent.address() == who) {
      if (!self->state.stopping)
        lose_node(self, std::string(name), "is gone: " + why);
      return true;
    }
  return false;
}

void watch_nodes(Self self) {
  auto& state = self->state;
  if (!state.nodes)
    return;
  if (const auto problem =
          state.nodes->place_all(role_counts(state.options.config), state.processes.now());
      !problem.empty())
    caf::anon_send(state.options.listener, lost_atom_v, Role::replay, std::int32_t{0},
                   "it has no place: " + problem, false);
  if (state.nodes->placed())
    lose_ended(self);
  const double patience = state.options.config.supervision.lost_seconds;
  for (const auto& name : state.nodes->silent_since(state.processes.now() - ticks(patience)))
    lose_node(self, name, "sent no heartbeat for " + number(patience) + " s");
}

void stop_nodes(Self self) {
  self->state.nodes_left = self->state.node_handles.size();
  const auto* wait = self->state.options.nodes_wait;
  const bool over = wait == nullptr || !*wait;
  for (auto& [name, node] : self->state.node_handles)
    self->request(node.actor, kRequestDeadline, stop_atom_v)
        .then(
            [self, over, agent = node.agent](done_atom) {
              --self->state.nodes_left;
              if (agent && over)
                caf::anon_send(agent, done_atom_v);
              else if (agent)
                caf::anon_send(agent, stop_atom_v);
            },
            [self](const caf::error&) { --self->state.nodes_left; });
}

std::string scale_environments(Self self, std::int32_t count) {
  auto& state = self->state;
  auto& environments = state.options.config.actors.environment;
  if (count < 1)
    return "there must be at least one environment actor";
  if (state.nodes)
    if (auto problem = state.nodes->reserve(role_name(Role::environment), environments, count);
        !problem.empty())
      return problem;
  environments = count;
  return {};
}

} // namespace troupe::actors::supervision
