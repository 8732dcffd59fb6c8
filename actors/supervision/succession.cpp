/// The supervisor's part in taking over the processes of a dead head. The processes come by
/// themselves, and each repeats the message that it sent when it had started.
#include <cerrno>
#include <csignal>

#include "actors/supervision/supervisor_parts.hpp"

namespace troupe::actors::supervision {

/// Their endpoints are known from the start, so that restarting processes can connect to them.
void expect_processes(Self self, const wire::HeadRecord& before) {
  auto& state = self->state;
  const auto& config = state.options.config;
  state.shard_endpoints.resize(static_cast<std::size_t>(config.replay.shards));
  for (const auto& one : before.processes()) {
    const ActorKey key{role_named(one.role()), one.index()};
    const auto index = static_cast<std::size_t>(key.second);
    if (key.second >= role_count(config, key.first))
      continue; // scaling stopped it
    state.processes.expect(key, one.incarnation(), one.process());
    state.processes.place(key, "");
    if (key.first == Role::replay)
      state.shard_endpoints.at(index) = one.endpoint();
    else if (key.first == Role::parameter_server)
      state.server_endpoints.at(index) = one.endpoint();
    else if (key.first == Role::learner && index == 0)
      state.parameter_endpoint = one.endpoint();
  }
}

void adopt_process(Self self, const ActorKey& key, const wire::Life& life) {
  auto& state = self->state;
  const auto node = state.node_handles.find(state.processes.at(key).node);
  if (!state.nodes && node != state.node_handles.end())
    self->send(node->second.actor, joined_atom_v, encode(life));
}

bool process_has_ended(const SupervisorState& state, const ActorKey& key) {
  const auto& process = state.processes.at(key);
  return !state.nodes && process.come_by > 0 && process.id > 0 && ::kill(process.id, 0) != 0
         && errno == ESRCH;
}

} // namespace troupe::actors::supervision
