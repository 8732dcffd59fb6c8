#include <algorithm>

#include "actors/supervisor_nodes.hpp"

namespace troupe::actors::supervision {

namespace {

double seconds(std::int64_t ticks_passed) {
  return static_cast<double>(ticks_passed) / static_cast<double>(ticks(1));
}

const char* state_name(const SupervisorState::Child& child) {
  switch (child.phase) {
  case Phase::absent:
    return "down";
  case Phase::starting:
    return child.waiting ? "waiting" : "starting";
  case Phase::up:
    return "up";
  case Phase::leaving:
    return "leaving";
  }
  return "unknown";
}

std::string why_not_started(const SupervisorState& state, const SupervisorState::Child& child) {
  if (child.phase != Phase::starting)
    return {};
  if (!child.waiting)
    return "its process is being started";
  if (child.not_before > state.now)
    return "it is started again in " + number(seconds(child.not_before - state.now)) + " s";
  return "it waits for a node: " + child.problem;
}

void add_nodes(const SupervisorState& state, wire::SupervisorReport& report) {
  for (const auto& [name, node] : state.nodes) {
    auto& told = *report.add_nodes();
    told.set_name(name);
    told.set_address(node.address);
    told.set_there(true);
    told.set_last_beat(node.agent ? seconds(state.now - node.heard) : 0);
  }
  for (const auto& [name, resources] : state.resources)
    if (!state.nodes.contains(name)) {
      auto& told = *report.add_nodes();
      told.set_name(name);
      told.set_address(resources.address);
    }
}

} // namespace

wire::SupervisorReport supervisor_report(const SupervisorState& state) {
  const auto& config = state.options.config;
  const std::int64_t window = ticks(60 * config.supervision.restart_minutes);
  wire::SupervisorReport report;
  report.set_restarts_allowed(config.actors.restarts);
  report.set_restart_minutes(config.supervision.restart_minutes);
  add_nodes(state, report);
  for (const auto& [key, child] : state.children) {
    if (key.first == Role::environment && child.phase == Phase::absent
        && key.second >= config.actors.environment)
      continue; // the run was scaled
    auto& told = *report.add_processes();
    told.set_role(role_name(key.first));
    told.set_index(key.second);
    told.set_state(state_name(child));
    told.set_node(child.node);
    told.set_process(child.id);
    told.set_incarnation(child.incarnation);
    told.set_restarts(static_cast<std::int32_t>(
        std::count_if(child.deaths.begin(), child.deaths.end(),
                      [&](std::int64_t at) { return at >= state.now - window; })));
    told.set_age(seconds(state.now - child.since));
    told.set_last_beat(child.phase == Phase::up ? seconds(state.now - child.heard) : 0);
    told.set_waits(why_not_started(state, child));
  }
  return report;
}

std::string scale_environments(Self self, std::int32_t count) {
  auto& state = self->state;
  auto& now = state.options.config.actors.environment;
  if (count < 1)
    return "there must be at least one environment actor";
  for (int index = now; index < count && state.placer && state.placed; ++index) {
    const Placing placing = state.placer->place(role_name(Role::environment), index);
    if (placing)
      continue;
    for (int made = now; made < index; ++made)
      state.placer->release(role_name(Role::environment), made);
    return "there is room for " + std::to_string(index) + " environment actors: " + placing.problem;
  }
  now = count;
  return {};
}

} // namespace troupe::actors::supervision
