#include "actors/supervision/supervisor_parts.hpp"

namespace troupe::actors::supervision {

namespace {

const char* state_name(const Process& process) {
  switch (process.phase) {
  case Phase::absent:
    return "down";
  case Phase::starting:
    return process.waiting ? "waiting" : "starting";
  case Phase::up:
    return "up";
  case Phase::leaving:
    return "leaving";
  }
  return "unknown";
}

std::string why_not_started(const Process& process, std::int64_t now) {
  if (process.phase != Phase::starting)
    return {};
  if (!process.waiting)
    return "its process is being started";
  if (process.not_before > now)
    return "it restarts in " + number(seconds_of(process.not_before - now)) + " s";
  return "it waits for a node: " + process.problem;
}

void add_nodes(const SupervisorState& state, wire::SupervisorReport& report) {
  const auto add = [&](const std::string& name, const std::string& address) {
    auto& node = *report.add_nodes();
    node.set_name(name);
    node.set_address(address);
    return &node;
  };
  if (!state.nodes) {
    for (const auto& [name, handles] : state.node_handles)
      add(name, "127.0.0.1")->set_there(true);
    return;
  }
  for (const auto& [name, node] : state.nodes->up()) {
    auto& added = *add(name, node.address);
    added.set_there(true);
    added.set_last_beat(seconds_of(state.processes.now() - node.heard));
  }
  for (const auto& [name, resources] : state.nodes->known())
    if (!state.nodes->up().contains(name))
      add(name, resources.address);
}

} // namespace

wire::SupervisorReport supervisor_report(const SupervisorState& state) {
  const auto& config = state.options.config;
  const std::int64_t now = state.processes.now();
  wire::SupervisorReport report;
  report.set_restarts_allowed(config.actors.restarts);
  report.set_restart_minutes(config.supervision.restart_minutes);
  add_nodes(state, report);
  for (const auto& [key, process] : state.processes.all()) {
    if (key.first == Role::environment && process.phase == Phase::absent
        && key.second >= config.actors.environment)
      continue; // scaled down
    auto& entry = *report.add_processes();
    entry.set_role(role_name(key.first));
    entry.set_index(key.second);
    entry.set_state(state_name(process));
    entry.set_node(process.node);
    entry.set_process(process.id);
    entry.set_incarnation(process.incarnation);
    entry.set_restarts(static_cast<std::int32_t>(state.processes.recent_deaths(key)));
    entry.set_age(seconds_of(now - process.since));
    entry.set_waits(why_not_started(process, now));
  }
  return report;
}

} // namespace troupe::actors::supervision
