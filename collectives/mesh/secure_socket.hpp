#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "collectives/mesh/socket.hpp"

namespace troupe::collectives {

/// The secret of a group's connections.
using GroupKey = std::array<std::byte, 32>;

/// One end of a connection under TLS 1.3 (AES-128-GCM) with a pre-shared key, with forward secrecy:
/// the handshake succeeds only if both ends have the key. No call waits. One thread at a time; may
/// be moved.
class SecureSocket {
public:
  enum class Role : std::uint8_t { client, server };
  enum class Handshake : std::uint8_t {
    done,
    waiting, // for the peer's bytes
    closed,  // by the peer
    refused  // one of the two has another key, or does not speak this protocol
  };

  /// A connection sends this much with one set of traffic keys before it takes the next, so that it
  /// stays far below what TLS allows AES-GCM (2^24.5 records).
  static constexpr std::uint64_t kBytesOfKeys = std::uint64_t{1} << 36;
  static constexpr std::size_t kFewBytes = std::size_t{8} << 10; // read from the system at once

  SecureSocket();
  /// `read_bytes` are read from the system at once. Throws std::runtime_error if OpenSSL does.
  SecureSocket(Socket socket, Role role, const GroupKey& key, std::size_t read_bytes = kFewBytes,
               std::uint64_t bytes_of_keys = kBytesOfKeys);
  SecureSocket(SecureSocket&&) noexcept;
  SecureSocket& operator=(SecureSocket&&) noexcept;
  ~SecureSocket();

  explicit operator bool() const { return state_ != nullptr; }
  int fd() const; // for poll()

  /// Continues the handshake with what has arrived. Data follow once it is done.
  Handshake handshake();

  /// Moves bytes that have arrived, returns how many; 0: none are there. Nothing: the peer has left
  /// or sent what is not its own.
  std::optional<std::size_t> receive(std::span<std::byte> to);

  /// Takes bytes, returns how many; 0: the connection is full until flush() returns true. `more`:
  /// another call follows at once. Nothing: the peer has left.
  std::optional<std::size_t> send(std::span<const std::byte> from, bool more = false);

  /// Whether the system has all bytes that send() took; tries again where it did not.
  bool flush();

  /// From here on neither end encrypts or checks what it sends: the handshake has shown who the
  /// peer is, and nothing on the way is to be feared. Both ends do it, after the same byte.
  void continue_in_the_clear();

  /// Sends no more; the peer finds the end after what was sent.
  void close_sending();

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Sends all of it. False: the peer has left, or does not read until the deadline.
bool send_all(SecureSocket& socket, std::span<const std::byte> bytes, Deadline deadline);
bool receive_all(SecureSocket& socket, std::span<std::byte> bytes, Deadline deadline);

/// Completes the handshake, or returns what it came to by the deadline.
SecureSocket::Handshake finish_handshake(SecureSocket& socket, Deadline deadline);

} // namespace troupe::collectives
