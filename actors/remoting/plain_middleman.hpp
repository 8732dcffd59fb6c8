#pragma once

#include <chrono>
#include <memory>

#include <caf/io/middleman_actor.hpp>

namespace troupe::actors {

class PendingHandshakes;
class Refusals;
class Listeners;

/// Starts CAF's interface to unencrypted connections within this host, between processes of one
/// user. It drops a connection of another user before reading from it, and one that announces too
/// large a message before allocating memory for it: above kMostMessageBytes, and before its
/// handshake above PendingHandshakes::kMostBytes.
caf::io::middleman_actor spawn_plain_middleman(caf::actor_system& system,
                                               std::shared_ptr<Refusals> refusals,
                                               std::shared_ptr<PendingHandshakes> pending,
                                               std::shared_ptr<Listeners> listeners,
                                               std::chrono::milliseconds connect_deadline);

} // namespace troupe::actors
