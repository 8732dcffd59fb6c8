#include "actors/supervisor_nodes.hpp"

#include <algorithm>

#include "actors/node_actor.hpp"
#include "actors/node_info.hpp"
#include "actors/system.hpp"

namespace troupe::actors::supervision {

namespace {

constexpr std::int64_t kTicksPerSecond = 5;

void lose_node(Self self, const std::string& name, const std::string& why) {
  auto& state = self->state;
  if (state.nodes.erase(name) == 0)
    return;
  state.placer->remove_node(name);
  std::vector<Key> there;
  for (const auto& [key, child] : state.children)
    if (child.node == name && child.phase != Phase::absent)
      there.push_back(key);
  for (const Key& key : there)
    lost(self, key, "its node " + name + " " + why);
}

bool is_expected(const SupervisorState& state, const std::string& name) {
  const auto names = state.placer->nodes();
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// When all that are expected have joined, or none more will come, everybody is placed at once.
void place_everybody(SupervisorState& state) {
  const auto expected = state.placer->nodes();
  const auto missing = std::count_if(expected.begin(), expected.end(),
                                     [&](const auto& name) { return !state.nodes.contains(name); });
  if (missing > 0 && state.now <= ticks(state.options.deployment.nodes->join_seconds))
    return;
  for (const auto& name : expected)
    if (!state.nodes.contains(name))
      state.placer->remove_node(name);
  std::map<std::string, int> counts;
  for (const Role role :
       {Role::replay, Role::parameter_server, Role::learner, Role::environment, Role::evaluator})
    counts[role_name(role)] = role_count(state.options.config, role);
  state.placed = true;
  if (const std::string problem = state.placer->place_all(counts); !problem.empty())
    caf::anon_send(state.options.listener, lost_atom_v, static_cast<std::uint8_t>(Role::replay),
                   std::int32_t{0},
                   "it has no place: " + std::to_string(missing) + " of "
                       + std::to_string(expected.size()) + " nodes are missing, and " + problem,
                   false);
}

/// The first learner without a place on a node that is there, or -1. They are told each other's
/// places as they begin.
std::int32_t learner_without_place(const SupervisorState& state) {
  for (std::int32_t i = 0; i < state.options.config.learner.replicas; ++i) {
    const auto* at = state.placer->find(role_name(Role::learner), i);
    if (!at || !state.nodes.contains(at->node))
      return i;
  }
  return -1;
}

} // namespace

std::int64_t ticks(double seconds) {
  return static_cast<std::int64_t>(seconds * static_cast<double>(kTicksPerSecond));
}

std::string number(double value) {
  std::string text = std::to_string(value); // "0.500000"
  text.erase(text.find_last_not_of('0') + 1);
  return text.back() == '.' ? text.substr(0, text.size() - 1) : text;
}

wire::Life life_of(const SupervisorState& state, const Key& key) {
  wire::Life life;
  life.set_role(role_name(key.first));
  life.set_index(key.second);
  life.set_epoch(state.options.epoch);
  life.set_incarnation(state.children.at(key).incarnation);
  return life;
}

void begin_nodes(Self self) {
  auto& state = self->state;
  const auto& deployment = state.options.deployment;
  if (!deployment.nodes) {
    state.nodes[""].actor =
        self->spawn(node_actor, NodeOptions{.start_process = deployment.start_process,
                                            .supervisor = SupervisorActor(self)});
    return;
  }
  state.placer = deployment.nodes->placer;
  for (const auto& name : state.placer->nodes())
    state.resources[name] = state.placer->free(name);
}

void start_process(Self self, const Key& key) {
  auto& state = self->state;
  auto& child = state.children.at(key);
  wire::ProcessStart order;
  *order.mutable_life() = life_of(state, key);
  order.set_head_port(state.options.head_port);
  child.node.clear();
  if (state.placer) {
    const Placing placing =
        state.placed ? state.placer->place(role_name(key.first), key.second) : Placing{};
    child.waiting = !placing || !state.nodes.contains(placing.at->node);
    child.problem = state.placed ? placing.problem : "the nodes are not all there";
    if (const auto other = learner_without_place(state);
        !child.waiting && key.first == Role::learner && other >= 0) {
      child.waiting = true;
      child.problem = "learner " + std::to_string(other) + " has no place yet";
    }
    if (child.waiting)
      return;
    child.node = placing.at->node;
    if (state.options.deployment.nodes->pin)
      order.set_cores(core_set_text(placing.at->cores));
    order.mutable_gpus()->Assign(placing.at->gpus.begin(), placing.at->gpus.end());
  }
  const auto& node = state.nodes.at(child.node);
  order.set_address(node.address);
  order.set_config(state.options.config_file);
  self->send(node.actor, spawn_atom_v, encode(order));
}

void add_learner_places(const SupervisorState& state, wire::Wiring& wiring) {
  for (int i = 0; state.placer && i < state.options.config.learner.replicas; ++i) {
    const auto* at = state.placer->find(role_name(Role::learner), i);
    wiring.add_learner_nodes(at ? at->node : "");
  }
}

caf::result<Encoded> join_node(Self self, const wire::NodeInfo& info, const caf::actor& actor,
                               const caf::actor& agent) {
  auto& state = self->state;
  if (!state.placer || state.stopping)
    return caf::make_error(Fault::bad_request,
                           std::string("this run ") + (state.stopping ? "ends" : "has no nodes"));
  NodeResources told = node_resources(info);
  lose_node(self, told.name, "came back");
  if (const auto known = state.resources.find(told.name);
      known != state.resources.end() && known->second.known) {
    told.numa = known->second.numa; // the cluster file's word
    told.memory_bytes = known->second.memory_bytes;
    told.labels = known->second.labels;
    told.group = known->second.group;
  }
  if (is_expected(state, told.name))
    state.placer->remove_node(told.name);
  state.placer->add_node(told);
  state.resources[told.name] = told;
  state.nodes[told.name] = {.actor = caf::actor_cast<NodeActor>(actor),
                            .agent = agent,
                            .life = info.life(),
                            .heard = state.now,
                            .address = told.address};
  self->monitor(agent);
  wire::NodeWelcome welcome;
  welcome.set_epoch(state.options.epoch);
  welcome.set_config(state.options.config_file);
  welcome.set_heartbeat_seconds(state.options.config.supervision.heartbeat_seconds);
  welcome.set_lost_seconds(state.options.config.supervision.lost_seconds);
  return encode(welcome);
}

void take_node_beat(Self self, const std::string& name, std::uint64_t life,
                    const caf::actor& agent) {
  const auto at = self->state.nodes.find(name);
  if (at == self->state.nodes.end() || at->second.life != life) {
    caf::anon_send(agent, stop_atom_v); // we have given it up
    return;
  }
  at->second.heard = self->state.now;
  caf::anon_send(agent, beat_atom_v);
}

bool node_is_down(Self self, const caf::actor_addr& who, const std::string& why) {
  const auto& nodes = self->state.nodes;
  const auto at = std::find_if(nodes.begin(), nodes.end(), [&](const auto& entry) {
    return entry.second.agent && entry.second.agent.address() == who;
  });
  if (at == nodes.end())
    return false;
  if (!self->state.stopping)
    lose_node(self, std::string(at->first), "is gone: " + why);
  return true;
}

void watch_nodes(Self self) {
  auto& state = self->state;
  if (state.placer && !state.placed)
    place_everybody(state);
  const double patience = state.options.config.supervision.lost_seconds;
  std::vector<std::string> silent;
  for (const auto& [name, node] : state.nodes)
    if (node.agent && state.now - node.heard > ticks(patience))
      silent.push_back(name);
  for (const auto& name : silent)
    lose_node(self, name, "gave no sign of life for " + number(patience) + " s");
}

void stop_nodes(Self self) {
  self->state.nodes_left = self->state.nodes.size();
  const auto& nodes = self->state.options.deployment.nodes;
  const bool over = !nodes || !nodes->head_comes_back || !nodes->head_comes_back();
  for (auto& [name, node] : self->state.nodes)
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

} // namespace troupe::actors::supervision
