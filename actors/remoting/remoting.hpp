#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>

#include "actors/remoting/cluster_keys.hpp"

namespace troupe::actors {

class HandshakeGate;
class Refusals;
class TlsContext;

struct RemotingOptions {
  std::shared_ptr<const ClusterKeys> keys{}; // null: unencrypted, on the loopback interface only
  std::chrono::milliseconds handshake_deadline{5000}; // for a peer to complete its handshake
  std::size_t most_handshakes = 256; // at a time, see HandshakeGate and PendingHandshakes
  /// Time after which a connection that a peer has opened breaks if its host acknowledges nothing,
  /// or the peer reads nothing although its buffers are full. Monitors of its actors are notified.
  /// 0: the system decides.
  std::chrono::milliseconds unreachable{0};
  /// Called on internal threads with a description of the 1st, 10th, 100th … refused peer.
  std::function<void(const std::string&)> on_stranger{};
};

/// Publishes actors for other processes and connects to theirs. With keys every connection uses TLS
/// 1.3, and both sides show a certificate of the deployment's authority; other peers are refused
/// before CAF reads a byte. Host names are not checked: the node key identifies a node.
///
/// One per actor system, which must be made with SystemConfig(true, …) and outlive it. publish()
/// and connect() may be called from any thread.
class Remoting {
public:
  Remoting(caf::actor_system& system, RemotingOptions options = {});
  ~Remoting(); // listens no more
  Remoting(const Remoting&) = delete;
  Remoting& operator=(const Remoting&) = delete;

  /// Listens at a free port of `address` and returns the port, for a later publish() at that
  /// address and port. Throws as publish() does.
  std::uint16_t reserve(const std::string& address);

  /// Publishes `whom` at address:port (port 0: a free port) and returns the port. Throws
  /// std::invalid_argument if the address is not loopback and there are no keys, and
  /// std::runtime_error with the cause if it cannot listen.
  template <class Handle>
  std::uint16_t publish(const Handle& whom, const std::string& address, std::uint16_t port = 0) {
    return publish_at(caf::actor_cast<caf::strong_actor_ptr>(whom), system_.message_types(whom),
                      address, port);
  }

  /// Returns the actor published at host:port. Throws std::invalid_argument as publish() does, and
  /// std::runtime_error with the cause (refused, a stranger, another interface, timed out).
  template <class Handle>
  Handle connect(const std::string& host, std::uint16_t port,
                 std::chrono::milliseconds deadline = std::chrono::seconds(30)) {
    return caf::actor_cast<Handle>(
        connect_to(system_.message_types(caf::detail::type_list<Handle>{}), host, port, deadline));
  }

  std::int64_t strangers() const; // connections refused so far
  std::size_t handshakes() const; // connections whose peers have not completed their handshakes

private:
  std::uint16_t publish_at(const caf::strong_actor_ptr& whom, std::set<std::string> signatures,
                           const std::string& address, std::uint16_t port);
  caf::strong_actor_ptr connect_to(const std::set<std::string>& signatures, const std::string& host,
                                   std::uint16_t port, std::chrono::milliseconds deadline);
  void check_address(const std::string& address, const char* what) const;

  caf::actor_system& system_;
  std::shared_ptr<const ClusterKeys> keys_;
  std::shared_ptr<const TlsContext> context_; // null without keys
  std::shared_ptr<Refusals> refusals_;
  std::shared_ptr<HandshakeGate> gate_; // null without keys
  struct Middleman;                     // CAF's interface to connections
  std::unique_ptr<Middleman> middleman_;
};

} // namespace troupe::actors
