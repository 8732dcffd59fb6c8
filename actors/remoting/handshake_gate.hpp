#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "actors/remoting/tls.hpp"
#include "env/sockets/descriptor.hpp"

namespace troupe::actors {

/// The first line of the listening side, once it knows its peer. A different line is from another
/// version, or not from a node.
constexpr std::string_view kGreeting = "troupe 1\n";

/// Holds connections until their peers have shown a certificate of the deployment. A separate
/// thread does the handshakes, so that a silent or slow peer delays no other. Above
/// `most_handshakes` it closes the oldest of the address that has most, so that one host with many
/// half-open connections shuts out no other. Any thread.
class HandshakeGate {
public:
  struct Options {
    std::chrono::milliseconds deadline{5000};
    std::size_t most_handshakes = 256;
    std::function<void(const std::string&)> on_stranger{};
  };
  HandshakeGate(std::shared_ptr<const TlsContext> context, Options options);
  ~HandshakeGate();
  HandshakeGate(const HandshakeGate&) = delete;
  HandshakeGate& operator=(const HandshakeGate&) = delete;

  /// Called on the gate's thread, once for each accepted peer.
  using Admit = std::function<void(env::wire::Descriptor, std::unique_ptr<TlsSession>)>;
  /// Takes ownership of a non-blocking socket.
  void take(env::wire::Descriptor socket, std::string address, Admit admit);

  std::int64_t strangers() const { return strangers_; }
  std::size_t handshakes() const; // at this moment

private:
  struct Peer {
    env::wire::Descriptor socket;
    std::string address;
    Admit admit;
    std::unique_ptr<TlsSession> session;
    std::chrono::steady_clock::time_point deadline;
    TlsSession::State state = TlsSession::State::wants_read;
    bool greets = false; // its certificate is good; the greeting is on its way
  };
  void run(const std::stop_token& stop);
  void welcome_arrivals();
  void make_room();
  bool advance(Peer& peer); // false: done with it
  void refuse(const Peer& peer, const std::string& why);
  void ring() const;

  std::shared_ptr<const TlsContext> context_;
  Options options_;
  std::atomic<std::int64_t> strangers_ = 0;
  std::atomic<std::size_t> at_work_ = 0;
  env::wire::Descriptor bell_;
  mutable std::mutex mutex_; // of arrivals_
  std::vector<Peer> arrivals_;
  std::list<Peer> peers_; // oldest first; the thread's alone
  std::jthread thread_;
};

} // namespace troupe::actors
