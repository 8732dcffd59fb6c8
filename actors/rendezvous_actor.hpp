#pragma once

#include <map>
#include <string>
#include <vector>

#include "actors/messages.hpp"

namespace troupe::actors {

struct RendezvousState {
  static const char* name;
  struct Waiter {
    std::vector<std::string> keys;
    bool wants_value = false;
    caf::typed_response_promise<Encoded> promise;
  };
  std::map<std::string, std::string> values;
  std::size_t bytes = 0; // of keys and values
  std::map<std::uint64_t, Waiter> waiting;
  std::uint64_t questions = 0;
};

/// Where learners in processes of their own find each other: c10d's store as an actor of the head,
/// behind the connection that they have with it, so that only who has the deployment's keys can ask
/// (LibTorch's TCPStore asks nobody who they are). For one life of the learners: the next has a new
/// one. Answers as TCPStore does; a key that does not come is answered with Fault::late when the
/// patience that was asked for is over, what would exceed the bounds (64 MiB, 65,536 keys, 4,096
/// who wait) with Fault::bad_request, and who still waits when it ends with Fault::stopping.
RendezvousActor::behavior_type
rendezvous_actor(RendezvousActor::stateful_pointer<RendezvousState> self);

} // namespace troupe::actors
