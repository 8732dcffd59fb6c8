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
  bool publishes = false; // to all subscribers the newest message; else a router
  bool any_user = false;  // else processes of other users, and of other hosts, are disconnected
  std::size_t max_peers = 4096;
  /// Of unfinished messages of all peers; above it the peer that has needed longest for its message
  /// is disconnected.
  std::size_t max_unfinished_bytes = std::size_t{1} << 30;
  /// Of messages that the owner has not taken; above it nothing more is read.
  std::size_t max_waiting_bytes = std::size_t{1} << 30;
  /// Of messages that peers have not read; above it the peer with most of them is disconnected.
  std::size_t max_unread_bytes = std::size_t{2} << 30;
};

/// The router, or the publisher, of connections without keys: it speaks ZeroMQ's protocol with
/// ZeroMQ's dealers and subscribers, and bounds what strangers can make it hold, which libzmq does
/// not (it has no limit of the parts of a message, takes over the paths of living servers and
/// aborts when descriptors run out). Nothing more is read from a peer that does not read its
/// answers. A thread of its own reads, writes and accepts; one other thread at a time calls the
/// functions.
class PlainPort {
public:
  explicit PlainPort(const PortOptions& options);
  ~PlainPort();
  PlainPort(const PlainPort&) = delete;
  PlainPort& operator=(const PlainPort&) = delete;

  /// Listens at another endpoint; returns it with the port. Throws as Listener does.
  std::string bind(const std::string& endpoint);

  struct Received {
    std::string peer;
    ZmtpMessage message;
  };
  /// Never waits. Peers with messages take turns.
  std::optional<Received> try_receive();
  int descriptor() const; // readable while there is a message

  bool is_peer(const std::string& peer) const; // by its form: it may have left
  /// Never waits. Drops the message if the peer does not read (1024 wait), false if it has left.
  bool send(const std::string& peer, std::vector<Frame> parts);
  /// To all subscribers, instead of what they have not begun to read.
  void publish(std::vector<Frame> parts);

  /// Peers, for what they sent or did not read, or whose user is another. Any thread.
  std::int64_t disconnected() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::env::wire
