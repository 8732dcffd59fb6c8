#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "env/wire/context.hpp"
#include "env/wire/frame.hpp"

namespace troupe::env::wire {

/// A message as it travels: the address of the peer (of a router; else empty), a header (encoded
/// Protobuf) and any number of data frames.
struct Message {
  std::string peer;
  std::string header;
  std::vector<Frame> frames;
};

enum class SocketType { dealer, router, publisher, subscriber };

struct SocketOptions {
  std::size_t max_frame_bytes = std::size_t{64} << 20; // a peer that sends more is cut off
  std::size_t max_frames = 1024;                       // data frames of a message
  std::size_t max_header_bytes = std::size_t{1} << 20;
  bool keep_newest_only = false;  // subscriber: the newest message, of one frame, is kept
  bool allow_other_hosts = false; // bind something else than loopback
};

/// Owns one ZeroMQ socket. One thread at a time. Closing does not wait for messages still queued.
/// Errors throw std::runtime_error naming the endpoint.
class Socket {
public:
  Socket(Context& context, SocketType type, const SocketOptions& options = {});
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&&) = delete;

  /// "tcp://127.0.0.1:*" picks a port; gives the endpoint as bound. Throws std::invalid_argument
  /// when the address is not loopback and that was not allowed, std::runtime_error when it is in
  /// use.
  std::string bind(const std::string& endpoint);
  void connect(const std::string& endpoint);

  /// Queues the message whole. False at the deadline (or at once for a peer that is gone).
  bool send(Message&& message, Deadline deadline);

  enum class Received { message, nothing, oversized }; // oversized: dropped, beyond the limits
  /// Never waits. The message is valid when `message` is returned.
  Received try_receive(Message& message);

  /// Waits until try_receive() has something or `wake_fd` (-1: none) is readable. False at the
  /// deadline.
  bool wait(Deadline deadline, int wake_fd = -1);

  void* handle() const { return handle_; }

private:
  void* handle_ = nullptr;
  SocketType type_;
  SocketOptions options_;
};

} // namespace troupe::env::wire
