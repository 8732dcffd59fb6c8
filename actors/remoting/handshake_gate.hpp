#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "actors/remoting/tls.hpp"
#include "env/sockets/descriptor.hpp"

namespace troupe::actors {

class Refusals;

/// The listening side sends this line once it has accepted its peer. Any other line comes from
/// another version, or from a process that is not a node.
constexpr std::string_view kGreeting = "troupe 1\n";

/// Holds connections until their peers have shown a certificate of the deployment. Handshakes run
/// on a separate thread, so that a silent or slow peer delays no other. Above `most_handshakes` the
/// gate closes the oldest connection of the address that has the most, so that one host with many
/// half-open connections cannot shut out the others. A peer that leaves before it has sent a byte,
/// as the probes of Kubernetes do, does not count as refused. Any thread.
class HandshakeGate {
public:
  struct Options {
    std::chrono::milliseconds deadline{5000};
    std::size_t most_handshakes = 256;
  };
  HandshakeGate(std::shared_ptr<const TlsContext> context, std::shared_ptr<Refusals> refusals,
                Options options);
  ~HandshakeGate();
  HandshakeGate(const HandshakeGate&) = delete;
  HandshakeGate& operator=(const HandshakeGate&) = delete;

  /// Called on the gate's thread, once for each accepted peer.
  using Admit = std::function<void(env::wire::Descriptor, std::unique_ptr<TlsSession>)>;
  /// Takes ownership of a non-blocking socket and starts its handshake.
  void take(env::wire::Descriptor socket, std::string address, Admit admit);

  std::size_t handshakes() const; // handshakes in progress

private:
  struct Peer {
    env::wire::Descriptor socket;
    std::string address;
    Admit admit;
    std::unique_ptr<TlsSession> session;
    std::chrono::steady_clock::time_point deadline;
    TlsSession::State state = TlsSession::State::wants_read;
    bool greets = false; // its certificate is valid; the greeting is being sent
  };
  void run(const std::stop_token& stop);
  void welcome_arrivals();
  void make_room();
  bool advance(Peer& peer); // false: finished with this peer
  void refuse(const Peer& peer, const std::string& why);
  void ring() const;

  std::shared_ptr<const TlsContext> context_;
  const std::shared_ptr<Refusals> refusals_;
  const Options options_;
  std::atomic<std::size_t> at_work_ = 0;
  env::wire::Descriptor bell_;
  mutable std::mutex mutex_; // guards arrivals_
  std::vector<Peer> arrivals_;
  std::list<Peer> peers_; // oldest first; used only by the thread
  std::jthread thread_;
};

} // namespace troupe::actors
