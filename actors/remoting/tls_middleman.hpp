#pragma once

#include <memory>

#include <caf/io/middleman_actor.hpp>

#include "actors/remoting/handshake_gate.hpp"

namespace troupe::actors {

class Listeners;

/// Starts CAF's interface to connections over TLS. Published actors accept the peers that `gate`
/// admits, and a peer that we connect to must show a certificate that `context` trusts. CAF's own
/// TLS (0.17.6) is not used: it has no time limit for handshakes, ends the process when a key file
/// changes, and accepts any peer when it has no keys.
caf::io::middleman_actor spawn_tls_middleman(caf::actor_system& system,
                                             std::shared_ptr<const TlsContext> context,
                                             const std::shared_ptr<HandshakeGate>& gate,
                                             std::shared_ptr<Listeners> listeners,
                                             std::chrono::milliseconds handshake_deadline);

} // namespace troupe::actors
