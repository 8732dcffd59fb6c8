#pragma once

#include <map>
#include <string>
#include <vector>

#include "actors/protocol/messages.hpp"

namespace troupe::actors {

struct RendezvousState {
  static const char* name;
  struct Waiter {
    std::vector<std::string> keys;
    bool wants_value = false;
    caf::typed_response_promise<ProtoBytes> promise;
  };
  std::map<std::string, std::string> values;
  std::size_t bytes = 0; // of keys and values
  std::map<std::uint64_t, Waiter> waiting;
  std::uint64_t questions = 0;
};

/// The store in which learners of separate processes find each other: c10d's store as an actor of
/// the head. Requests arrive over the learners' connection with the head, so only processes with
/// the deployment's keys can use it (LibTorch's TCPStore does not authenticate clients). Learners
/// that restart get a new store. Answers as TCPStore does, or with Fault::late if a key is missing
/// at the request's deadline, Fault::bad_request beyond its limits (64 MiB, 65,536 keys, 4,096
/// waiting requests), and Fault::stopping if it ends first.
RendezvousActor::behavior_type
rendezvous_actor(RendezvousActor::stateful_pointer<RendezvousState> self);

} // namespace troupe::actors
