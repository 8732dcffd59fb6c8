#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace troupe::collectives {

using Deadline = std::chrono::steady_clock::time_point;

/// Owns the file descriptor of a socket or an event.
class Socket {
public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

private:
  int fd_ = -1;
};

/// Returns the milliseconds until `deadline` for poll(), rounded up and at least 0.
int milliseconds_until(Deadline deadline);

/// Waits until poll() reports one of `events` or an error. Returns false at the deadline.
bool wait_for_events(int descriptor, short events, Deadline deadline);

/// Listens only at host:port; port 0 lets the system choose. Throws std::runtime_error naming the
/// address, e.g. if the port is in use.
Socket listen_at(const std::string& host, int port);
int port_of(const Socket& socket);

/// Returns whether `host` is an address "127.…", "localhost" or "::1". Does not resolve names.
bool is_loopback(const std::string& host);

/// Returns whether only this host can reach a socket that listens at `host`, an address or a name.
/// Throws std::runtime_error if the name is unknown.
bool resolves_to_loopback(const std::string& host);

/// Connects to host:port. The socket is non-blocking and has TCP_NODELAY set. Throws
/// std::system_error (a std::runtime_error) naming the address if the connection is refused or the
/// deadline passes.
Socket connect_to(const std::string& host, int port, Deadline deadline);

/// Accepts one connection, non-blocking and with TCP_NODELAY set. Returns an empty socket if there
/// is none by the deadline.
Socket accept_from(const Socket& listener, Deadline deadline);

/// Sends all bytes. Returns false if the peer has left or has not read them by the deadline.
bool send_all(const Socket& socket, std::span<const std::byte> bytes, Deadline deadline);

} // namespace troupe::collectives
