#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>

#include "actors/messages.hpp"
#include "env/wire/context.hpp"
#include "replay/remote.hpp"

namespace troupe::actors {

struct ReplayProxyState {
  static const char* name;
  struct Wanted { // a sample
    std::uint32_t rows = 0;
    std::chrono::steady_clock::time_point deadline;
    caf::typed_response_promise<SamplePtr> promise;
  };
  env::wire::Context* context = nullptr;
  std::unique_ptr<replay::ShardClient> client;
  replay::TransitionSpec transitions;
  std::deque<Wanted> wanted; // one at a time is asked of the shard
  std::deque<caf::typed_response_promise<done_atom>> unacknowledged; // insertions on their way
  bool polling = false;
};

/// Stands for a shard in another process: the same interface, the bytes over ZeroMQ. Detached,
/// because it waits on a socket. An insertion is answered when the shard has accepted it. A shard
/// that died is waited for, at its endpoint or the one that wire_atom tells, until a request's
/// deadline; insertions on their way to another endpoint are answered with Fault::late, to be sent
/// again. Reports, checkpoints and the limiter are asked of the shard itself.
ReplayActor::behavior_type replay_proxy_actor(ReplayActor::stateful_pointer<ReplayProxyState> self,
                                              env::wire::Context* context, std::string endpoint,
                                              replay::TransitionSpec transitions);

/// Gives a shard of this process a data port; the server hands insertions and requests to the
/// actor. Off the loopback interface `endpoint` needs a context with keys. Throws as
/// replay::ShardServer does.
std::unique_ptr<replay::ShardServer> serve_shard(caf::actor_system& system,
                                                 env::wire::Context& context,
                                                 const ReplayActor& shard,
                                                 const replay::TransitionSpec& transitions,
                                                 const std::string& endpoint = "tcp://127.0.0.1:*");

} // namespace troupe::actors
