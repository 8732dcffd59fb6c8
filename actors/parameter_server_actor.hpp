#pragma once

#include <memory>

#include "actors/messages.hpp"
#include "learner/parameter_server_host.hpp"

namespace troupe::actors {

/// One shard of the parameters of learners that push to servers. Gradients and parameters go past
/// its mailbox, over the host's socket.
using ParameterServerActor = caf::typed_actor<
    caf::replies_to<hello_atom>::with<std::string>,           // where the learners' clients connect
    caf::replies_to<report_atom>::with<Encoded>,              // ParameterServerReport
    caf::replies_to<save_atom, std::string>::with<done_atom>, // path of a snapshot, written now
    caf::replies_to<load_atom, std::string>::with<done_atom>>; // before the first learner comes

struct ParameterServerState {
  static const char* name;
  std::unique_ptr<learner::ParameterServerHost> host;
};

/// Owns the host. Spawned again with the same options (a fixed endpoint, a snapshot) in a new
/// process it goes on from the snapshot, and the learners find it. Ends with the error when the
/// host cannot be made.
ParameterServerActor::behavior_type
parameter_server_actor(ParameterServerActor::stateful_pointer<ParameterServerState> self,
                       env::wire::Context* context, learner::ParameterServerHostOptions options);

} // namespace troupe::actors
