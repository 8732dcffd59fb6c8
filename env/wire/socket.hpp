#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "env/wire/context.hpp"
#include "env/wire/frame.hpp"
#include "env/wire/keys.hpp"
#include "env/wire/shared_memory.hpp"

namespace troupe::env::wire {

class PlainPort;
class Sharing;
struct Admission;

/// A message: the address of the peer (only at a router, otherwise empty), a header (encoded
/// Protobuf) and any number of data frames.
struct Message {
  std::string peer;
  std::string header;
  std::vector<Frame> frames;
};

enum class SocketType { dealer, router, publisher, subscriber };

struct SocketOptions {
  /// A peer that sends a larger frame is disconnected. A router without keys disconnects above the
  /// larger of this, max_header_bytes and 64 KiB, and drops the messages between.
  std::size_t max_frame_bytes = std::size_t{64} << 20;
  std::size_t max_frames = 1024; // data frames per message
  std::size_t max_header_bytes = std::size_t{1} << 20;
  /// Maximum message size for a socket that binds without keys; frames in shared memory do not
  /// count.
  std::size_t max_message_bytes = std::size_t{256} << 20;
  bool keep_newest_only = false; // subscriber: keep only the newest message, of one frame
  /// Allows binding beyond loopback without keys, and peers of other users of this host.
  bool allow_other_hosts = false;
  std::optional<SharedMemory> shared_memory{}; // with peers on this host (dealer and router)
  std::optional<ServerKeys> server_keys{};     // for a socket that binds
  std::optional<ClientKeys> client_keys{};     // for a socket that connects
  /// Called once, on a thread of the Context, with a description of the first refused peer.
  std::function<void(const std::string&)> on_stranger{};
};

/// Owns one ZeroMQ socket. One thread at a time may use it. Closing does not wait for messages
/// still queued. Errors throw std::runtime_error naming the endpoint.
///
/// With shared_memory, data frames between a router and a dealer of the same host and user are in
/// the sender's memory, which the receiver maps, if the dealer connects to no other router. The
/// message carries everything else, in order. It also carries all frames of peers elsewhere, and
/// frames for which the memory is full.
///
/// A router or publisher that binds without keys is a PlainPort, which limits what strangers can
/// make it hold. libzmq handles all other connections.
class Socket {
public:
  Socket(Context& context, SocketType type, const SocketOptions& options = {});
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&&) = delete;

  /// Binds and returns the endpoint with its port; "tcp://127.0.0.1:*" picks one. Throws
  /// std::invalid_argument if the address is not loopback and other hosts are not allowed, and
  /// std::runtime_error if the address is in use. If the Context has keys, an endpoint off the
  /// loopback interface is encrypted, and the returned endpoint names the server's key after a #.
  std::string bind(const std::string& endpoint);
  void connect(const std::string& endpoint);

  /// Returns uninitialised memory for a frame to `peer` (of a router). If possible, the memory is
  /// shared with the peer, so that sending it copies nothing. Throws std::bad_alloc.
  Frame frame(std::size_t size, const std::string& peer = {});

  /// Queues the whole message. Returns false at the deadline, or at once if the peer has left.
  bool send(Message&& message, Deadline deadline);

  enum class Received { message, nothing, oversized }; // oversized: beyond the limits, dropped
  /// Never waits. `message` is valid only if Received::message is returned.
  Received try_receive(Message& message);

  /// Waits until try_receive() has something to return or `wake_fd` (-1: none) is readable. Returns
  /// false at the deadline.
  bool wait(Deadline deadline, int wake_fd = -1);

  SharedCounters shared_counters() const; // zeros without shared_memory
  std::int64_t strangers() const;         // connections refused for wrong or missing keys
  /// Peers without keys that were disconnected for what they sent, for not reading, or for
  /// belonging to another user.
  std::int64_t disconnected() const;

private:
  struct Arrived;
  bool is_routed() const { return type_ == SocketType::router; }
  bool is_headed() const { return is_routed() || type_ == SocketType::dealer; }
  bool has_own_keys() const { return options_.server_keys || options_.client_keys; }
  bool send_parts(std::vector<Frame>& parts, Deadline deadline);
  void say(const std::string& peer, const std::string& control);
  void greet();
  void set_keys();
  void set_client_keys(const ClientKeys& keys);
  void set_server_keys(const ServerKeys& keys);
  void set_no_keys();
  void limit_frames(bool encrypted);
  std::optional<std::string> use_keys_to_bind(const std::string& endpoint);
  std::string bind_port(const std::string& endpoint);
  std::string use_keys_to_connect(const std::string& endpoint);
  Received receive(Message& message);
  bool receive_parts(Arrived& arrived);
  bool receive_from_port(Arrived& arrived);
  void take_part(Arrived& arrived, Frame&& frame);
  bool unpack(Arrived& arrived);

  Context* context_;
  void* handle_ = nullptr;
  SocketType type_;
  SocketOptions options_;
  std::unique_ptr<PlainPort> port_; // for endpoints bound without keys
  bool uses_zeromq_ = false;
  std::unique_ptr<Sharing> sharing_;
  std::shared_ptr<Admission> admission_;
  int connections_ = 0;
  std::optional<std::pair<Received, Message>> waiting_; // received by wait()
};

} // namespace troupe::env::wire
