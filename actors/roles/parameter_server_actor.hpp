#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "actors/protocol/messages.hpp"
#include "env/wire/context.hpp"
#include "learner/parameter_server/parameter_server_host.hpp"

namespace troupe::actors {

struct ParameterServerState {
  static const char* name;
  std::uint64_t incarnation = 0;
  std::shared_ptr<env::wire::Context> context; // outlives the host
  std::unique_ptr<learner::ParameterServerHost> host;
};

/// Owns the host. The first incarnation ignores its snapshot, which an earlier run has left. A
/// later incarnation with the same options (a fixed endpoint) continues from it, and the learners
/// reconnect. Dies with Fault::failed and the reason if the host cannot be made.
ParameterServerActor::behavior_type
parameter_server_actor(ParameterServerActor::stateful_pointer<ParameterServerState> self,
                       std::shared_ptr<env::wire::Context> context,
                       learner::ParameterServerHostOptions options, std::uint64_t incarnation);

/// Returns the path of a shard's part of a checkpoint, in the folder that save_atom and load_atom
/// name.
std::filesystem::path server_file(const std::filesystem::path& folder, int shard);

} // namespace troupe::actors
