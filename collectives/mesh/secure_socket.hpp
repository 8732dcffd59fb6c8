#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "collectives/mesh/socket.hpp"

namespace troupe::collectives {

/// The shared secret of a group's connections.
using GroupKey = std::array<std::byte, 32>;

/// One end of a TLS 1.3 connection (AES-128-GCM) with a pre-shared key and forward secrecy. The
/// handshake succeeds only if both ends have the key. No member function waits. At most one thread
/// may use it at a time.
class SecureSocket {
public:
  enum class Role : std::uint8_t { client, server };
  enum class Handshake : std::uint8_t {
    done,
    waiting, // for the peer's bytes
    closed,  // by the peer
    refused  // the keys differ, or the peer does not speak this protocol
  };

  /// Number of bytes that a connection sends with one set of traffic keys before it switches to the
  /// next. This stays far below TLS's limit for AES-GCM (2^24.5 records).
  static constexpr std::uint64_t kBytesOfKeys = std::uint64_t{1} << 36;
  static constexpr std::size_t kFewBytes = std::size_t{8} << 10; // bytes per read from the system

  SecureSocket();
  /// `read_bytes` is the number of bytes to read from the system in one call; `bytes_of_keys` is as
  /// kBytesOfKeys. Throws std::runtime_error if OpenSSL fails.
  SecureSocket(Socket socket, Role role, const GroupKey& key, std::size_t read_bytes = kFewBytes,
               std::uint64_t bytes_of_keys = kBytesOfKeys);
  SecureSocket(SecureSocket&&) noexcept;
  SecureSocket& operator=(SecureSocket&&) noexcept;
  ~SecureSocket();

  explicit operator bool() const { return state_ != nullptr; }
  int fd() const; // for poll()

  /// Continues the handshake with the bytes that have arrived. Data may follow once it is done.
  Handshake handshake();

  /// Copies bytes that have arrived to `to` and returns their number, or 0 if none have arrived.
  /// Returns nothing if the peer has left or sent bytes that fail authentication.
  std::optional<std::size_t> receive(std::span<std::byte> to);

  /// Accepts bytes to send and returns their number, or 0 if the connection is full until flush()
  /// returns true. Returns nothing if the peer has left.
  std::optional<std::size_t> send(std::span<const std::byte> from);

  /// Passes pending bytes to the system. Returns whether the system has accepted all bytes given to
  /// send().
  bool flush();

  /// Stops encrypting and authenticating from here on. Only for networks that are trusted, after
  /// the handshake has authenticated the peer. Both ends must call it after the same byte.
  void continue_in_the_clear();

  /// Closes the sending direction. The peer reads the end of the stream after the bytes sent so
  /// far.
  void close_sending();

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Sends all bytes. Returns false if the peer has left or has not read them by the deadline.
bool send_all(SecureSocket& socket, std::span<const std::byte> bytes, Deadline deadline);
bool receive_all(SecureSocket& socket, std::span<std::byte> bytes, Deadline deadline);

/// Completes the handshake, or returns its state at the deadline.
SecureSocket::Handshake finish_handshake(SecureSocket& socket, Deadline deadline);

} // namespace troupe::collectives
