#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "env/wire/frame.hpp"
#include "env/wire/zmtp_reader.hpp"

namespace troupe::env::wire {

struct PortOptions {
  ZmtpLimits limits{};
  bool publishes = false; // sends the newest message to all subscribers; otherwise a router
  bool any_user = false;  // otherwise disconnects processes of other users and other hosts
  std::size_t max_peers = 4096;
  /// Bytes of the unfinished messages of all peers. Above this limit, the peer whose message has
  /// taken longest is disconnected.
  std::size_t max_unfinished_bytes = std::size_t{1} << 30;
  /// Bytes of messages that the owner has not taken. Above this limit, the port stops reading.
  std::size_t max_waiting_bytes = std::size_t{1} << 30;
  /// Bytes of messages that peers have not read. Above this limit, the peer with the most unread
  /// bytes is disconnected.
  std::size_t max_unread_bytes = std::size_t{2} << 30;
};

/// A router or publisher for connections without keys. It speaks ZeroMQ's protocol with ZeroMQ's
/// dealers and subscribers, and limits what strangers can make it hold. libzmq does not: it has no
/// limit on the number of parts of a message, takes over the paths of live servers, and aborts when
/// descriptors run out.
///
/// The port stops reading from a peer that does not read its answers. The port's thread accepts,
/// reads and writes; one other thread at a time may call the functions.
class PlainPort {
public:
  explicit PlainPort(const PortOptions& options);
  ~PlainPort();
  PlainPort(const PlainPort&) = delete;
  PlainPort& operator=(const PlainPort&) = delete;

  /// Also listens at `endpoint`, and returns it with its port. Throws the exceptions of Listener.
  std::string bind(const std::string& endpoint);

  struct Received {
    std::string peer;
    ZmtpMessage message;
  };
  /// Never waits. Peers with messages take turns.
  std::optional<Received> try_receive();
  int descriptor() const; // readable while a message is available

  bool is_peer(const std::string& peer) const; // checks the form only: it may have left
  /// Never waits. Drops the message if 1024 messages already wait for the peer. Returns false if
  /// the peer has left.
  bool send(const std::string& peer, std::vector<Frame> parts);
  /// Sends to all subscribers, and replaces messages that they have not begun to read.
  void publish(std::vector<Frame> parts);

  /// Number of peers disconnected for what they sent, for not reading, or for belonging to another
  /// user. Any thread.
  std::int64_t disconnected() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::env::wire
