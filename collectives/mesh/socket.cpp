#include "collectives/mesh/socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe::collectives {
namespace {

struct FreeAddress {
  void operator()(addrinfo* info) const { freeaddrinfo(info); }
};
using Address = std::unique_ptr<addrinfo, FreeAddress>;

Address resolve(const std::string& host, int port) {
  if (port < 0 || port > 65535)
    throw std::runtime_error("port " + std::to_string(port) + " of host " + host
                             + " must be in [0, 65535]");
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0)
    throw std::runtime_error("host " + host + " is not known: " + gai_strerror(error)
                             + "; give an address or a name that resolves");
  return Address(found);
}

std::string name(const std::string& host, int port) {
  return host + ":" + std::to_string(port);
}

void make_ready(const Socket& socket) {
  const int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(socket.fd(), F_SETFL, fcntl(socket.fd(), F_GETFL) | O_NONBLOCK);
}

} // namespace

Socket::~Socket() {
  if (fd_ >= 0)
    close(fd_);
}

int milliseconds_until(Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
}

bool wait_for_events(int descriptor, short events, Deadline deadline) {
  pollfd entry{descriptor, events, 0};
  int ready;
  do
    ready = poll(&entry, 1, milliseconds_until(deadline));
  while (ready < 0 && errno == EINTR);
  return ready > 0;
}

Socket listen_at(const std::string& host, int port) {
  const auto address = resolve(host, port);
  Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!socket || bind(socket.fd(), address->ai_addr, address->ai_addrlen) != 0
      || listen(socket.fd(), 1024) != 0) {
    const int error = errno;
    if (error == EADDRINUSE)
      throw std::runtime_error("port " + std::to_string(port) + " of " + host
                               + " is in use by another program; choose another port, or 0 to "
                                 "let the system choose");
    throw std::runtime_error("cannot listen at " + name(host, port) + ": " + std::strerror(error));
  }
  return socket;
}

int port_of(const Socket& socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&storage), &length);
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(storage).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(storage).sin_port);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1"
         || (host.starts_with("127.")
             && host.find_first_not_of("0123456789.") == std::string::npos);
}

bool resolves_to_loopback(const std::string& host) {
  const auto address = resolve(host, 0);
  if (address->ai_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(
        &reinterpret_cast<const sockaddr_in6*>(address->ai_addr)->sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in*>(address->ai_addr)->sin_addr.s_addr) >> 24
         == IN_LOOPBACKNET;
}

Socket connect_to(const std::string& host, int port, Deadline deadline) {
  const auto address = resolve(host, port);
  Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket)
    throw std::runtime_error(std::string("cannot make a socket: ") + std::strerror(errno));
  make_ready(socket);
  int error = 0;
  if (connect(socket.fd(), address->ai_addr, address->ai_addrlen) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      error = ETIMEDOUT;
      if (wait_for_events(socket.fd(), POLLOUT, deadline)) {
        socklen_t length = sizeof error;
        getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
      }
    }
  }
  if (error != 0)
    throw std::system_error(error, std::generic_category(),
                            "cannot connect to " + name(host, port));
  return socket;
}

Socket accept_from(const Socket& listener, Deadline deadline) {
  if (!wait_for_events(listener.fd(), POLLIN, deadline))
    return {};
  Socket socket(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket)
    make_ready(socket);
  return socket;
}

bool send_all(const Socket& socket, std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const auto sent = send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0)
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    else if (sent < 0 && errno != EINTR
             && (errno != EAGAIN || !wait_for_events(socket.fd(), POLLOUT, deadline)))
      return false;
  }
  return true;
}

} // namespace troupe::collectives
