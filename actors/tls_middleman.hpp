#pragma once

#include <memory>

#include <caf/io/middleman_actor.hpp>

#include "actors/handshake_gate.hpp"

namespace troupe::actors {

/// CAF's interface to connections, over TLS: what it publishes listens for peers that `gate` lets
/// in, what it connects to must show a certificate that `context` trusts. CAF's own TLS (0.17.6)
/// is not used: it has no time limit for handshakes, ends the process when a key file changes
/// under it, and is open to everybody when it has no keys.
caf::io::middleman_actor spawn_tls_middleman(caf::actor_system& system,
                                             std::shared_ptr<const TlsContext> context,
                                             const std::shared_ptr<HandshakeGate>& gate,
                                             std::chrono::milliseconds handshake_deadline);

} // namespace troupe::actors
