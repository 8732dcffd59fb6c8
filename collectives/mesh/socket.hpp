#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace troupe::collectives {

using Deadline = std::chrono::steady_clock::time_point;

/// Owns a file descriptor of a socket or an event.
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

/// Milliseconds until `deadline` for poll(), rounded up, at least 0.
int milliseconds_until(Deadline deadline);

/// Waits until poll() reports one of `events`, or an error, of a descriptor. False: at the
/// deadline.
bool wait_for_events(int descriptor, short events, Deadline deadline);

/// Listens at host:port only (port 0: the system's choice). Throws std::runtime_error naming the
/// address, e.g. when the port is in use.
Socket listen_at(const std::string& host, int port);
int port_of(const Socket& socket);

/// Whether only this host reaches what listens at `host`, an address or a name. Throws
/// std::runtime_error if the name is not known.
bool resolves_to_loopback(const std::string& host);

/// Throws std::system_error (a std::runtime_error) naming the address when it is refused, or at the
/// deadline. Non-blocking, without delay.
Socket connect_to(const std::string& host, int port, Deadline deadline);

/// An empty socket if none connected by the deadline. Non-blocking, without delay.
Socket accept_from(const Socket& listener, Deadline deadline);

/// Sends all of it. False: the peer has left, or does not read until the deadline.
bool send_all(const Socket& socket, std::span<const std::byte> bytes, Deadline deadline);

} // namespace troupe::collectives
