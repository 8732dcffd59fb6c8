#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "env/wire/frame.hpp"

namespace troupe::env::wire {

struct ZmtpLimits {
  std::size_t max_part_bytes = std::size_t{64} << 20;
  std::size_t max_parts = 1024;
  std::size_t max_message_bytes = std::size_t{256} << 20; // of all parts together
};

/// A ZeroMQ message as it is sent over a connection.
struct ZmtpMessage {
  std::vector<Frame> parts;
  bool cut = false; // it had more parts or bytes than allowed; none of them is kept
};

/// Parses what a peer without security sends by ZeroMQ's protocol, ZMTP 3.x with the NULL mechanism
/// (https://rfc.zeromq.org/spec/23/), as the bytes arrive. Never holds more than the limits,
/// however long a message is. Uses no socket and no clock. One thread.
class ZmtpReader {
public:
  explicit ZmtpReader(const ZmtpLimits& limits) : limits_(limits) {}

  /// `stranger` means that the peer does not speak ZMTP 3 with NULL, or that a part is larger than
  /// allowed. No event follows it.
  enum class Event : std::uint8_t { nothing, command, message, stranger };

  /// Consumes bytes from the front until an event occurs or no bytes are left. Throws
  /// std::bad_alloc.
  Event take(std::span<const std::byte>& bytes);

  /// While a large part is arriving, returns the memory into which the next bytes may be received
  /// directly; otherwise empty. The caller then passes the number of bytes received to filled().
  std::span<std::byte> gap();
  Event filled(std::size_t bytes);

  bool is_ready() const { return ready_; }                // the handshake is complete
  std::size_t held_bytes() const { return bytes_; }       // of the unfinished message
  ZmtpMessage take_message();                             // call it after Event::message
  const std::string& command() const { return command_; } // its body, after Event::command

private:
  Event end_of_head();
  Event end_of_part();
  Event end_of_command();

  enum class State : std::uint8_t { greeting, head, part, command, skipped, broken };

  ZmtpLimits limits_;
  State state_ = State::greeting;
  bool ready_ = false;
  std::array<std::byte, 64> head_{}; // the greeting, or the header of a frame
  std::size_t have_ = 0;             // bytes received of head_ or of the frame
  std::size_t size_ = 0;             // of the frame
  bool more_ = false;                // more parts follow
  Frame part_;
  std::string command_;
  ZmtpMessage message_;
  std::size_t parts_ = 0;
  std::size_t bytes_ = 0;           // of the parts held
  std::size_t announced_bytes_ = 0; // of the message so far
};

/// The first bytes that a peer sends: its greeting and its READY command, for a socket of this
/// type.
std::vector<std::byte> zmtp_hello(const std::string& socket_type);

/// Appends the header of a frame of `size` bytes, which takes 2 or 9 bytes.
void append_zmtp_head(std::vector<std::byte>& to, std::size_t size, bool more,
                      bool command = false);

} // namespace troupe::env::wire
