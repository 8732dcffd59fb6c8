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
  std::size_t max_message_bytes = std::size_t{256} << 20; // of all parts
};

/// A message of ZeroMQ as it travels.
struct ZmtpMessage {
  std::vector<Frame> parts;
  bool cut = false; // it had more parts or bytes than allowed, and none is kept
};

/// What a peer without security sends by ZeroMQ's protocol, ZMTP 3.x with the NULL mechanism
/// (https://rfc.zeromq.org/spec/23/), read as the bytes arrive. Holds no more than the limits,
/// however long a message is. Without socket or clock; one thread.
class ZmtpReader {
public:
  explicit ZmtpReader(const ZmtpLimits& limits) : limits_(limits) {}

  /// `stranger`: not ZMTP 3 with NULL, or a part larger than allowed. Nothing follows it.
  enum class Event : std::uint8_t { nothing, command, message, stranger };

  /// Takes bytes from the front until one of these is complete or no byte is left. Throws
  /// bad_alloc.
  Event take(std::span<const std::byte>& bytes);

  /// Where the next bytes belong while a large part is on its way, to be received in place; else
  /// empty. After it the caller reports how many came.
  std::span<std::byte> gap();
  Event filled(std::size_t bytes);

  bool is_ready() const { return ready_; }                // its handshake is over
  std::size_t held_bytes() const { return bytes_; }       // of the unfinished message
  ZmtpMessage take_message();                             // after Event::message
  const std::string& command() const { return command_; } // after Event::command: its body

private:
  Event end_of_head();
  Event end_of_part();
  Event end_of_command();

  enum class State : std::uint8_t { greeting, head, part, command, skipped, broken };

  ZmtpLimits limits_;
  State state_ = State::greeting;
  bool ready_ = false;
  std::array<std::byte, 64> head_{}; // the greeting, or what precedes a frame
  std::size_t have_ = 0;             // of head_, or of the frame
  std::size_t size_ = 0;             // of the frame
  bool more_ = false;                // parts follow
  Frame part_;
  std::string command_;
  ZmtpMessage message_;
  std::size_t parts_ = 0;
  std::size_t bytes_ = 0;           // held
  std::size_t announced_bytes_ = 0; // of the message so far
};

/// What a peer says first: its greeting and that it is ready, as a socket of this type.
std::vector<std::byte> zmtp_hello(const std::string& socket_type);

/// What precedes a frame of `size` bytes: 2 or 9 bytes.
void append_zmtp_head(std::vector<std::byte>& to, std::size_t size, bool more,
                      bool command = false);

} // namespace troupe::env::wire
