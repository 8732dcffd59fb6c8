#include "env/sockets/peer_user.hpp"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "env/sockets/socket_table.hpp"

namespace troupe::env::wire {

namespace {

/// Returns both ends of a connection, with family AF_UNSPEC if they are unknown.
std::pair<TcpEnd, TcpEnd> ends_of(int connection) {
  sockaddr_storage here{}, there{};
  socklen_t here_size = sizeof here, there_size = sizeof there;
  if (::getsockname(connection, reinterpret_cast<sockaddr*>(&here), &here_size) != 0
      || ::getpeername(connection, reinterpret_cast<sockaddr*>(&there), &there_size) != 0)
    return {};
  return {tcp_end(here), tcp_end(there)};
}

/// Returns the owner of the socket at `near` if it is in `state`; sockets in other states may no
/// longer have an owner. `known` and `known_far` are the ends of a connection that exists.
std::optional<uid_t> owner(const TcpEnd& near, const TcpEnd& far, int state, const TcpEnd& known,
                           const TcpEnd& known_far) {
  if (near.family != AF_INET && near.family != AF_INET6)
    return std::nullopt;
  auto found = ask_for_socket(near, far);
  if (!found && !ask_for_socket(known, known_far)) // sock_diag misses existing sockets here
    found = find_socket(near, far);
  return found && found->state == state ? std::optional(found->user) : std::nullopt;
}

TcpEnd any_end(int family) {
  return {.family = family};
}

} // namespace

std::optional<uid_t> peer_user(int accepted) {
  int domain = 0;
  socklen_t size = sizeof domain;
  ucred peer{};
  socklen_t peer_size = sizeof peer;
  if (::getsockopt(accepted, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX)
    return ::getsockopt(accepted, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) == 0
               ? std::optional(peer.uid)
               : std::nullopt;
  const auto [here, there] = ends_of(accepted);
  return owner(there, here, TCP_ESTABLISHED, here, there);
}

std::optional<uid_t> server_user(int connected) {
  const auto [here, there] = ends_of(connected);
  return owner(there, any_end(there.family), TCP_LISTEN, here, there);
}

std::optional<uid_t> server_user(const std::string& endpoint) {
  const auto colon = endpoint.rfind(':');
  if (!endpoint.starts_with("tcp://") || colon < 6)
    return std::nullopt;
  std::string host = endpoint.substr(6, colon - 6);
  const bool six = host.starts_with('[') && host.ends_with(']');
  if (six)
    host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV; // makes no name-server request
  hints.ai_family = six ? AF_INET6 : AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* got = nullptr;
  if (::getaddrinfo(host == "localhost" ? "127.0.0.1" : host.c_str(),
                    endpoint.substr(colon + 1).c_str(), &hints, &got)
      != 0)
    return std::nullopt;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> found(got, ::freeaddrinfo);
  sockaddr_storage where{};
  std::memcpy(&where, found->ai_addr, found->ai_addrlen);
  const TcpEnd end = tcp_end(where);
  return owner(end, any_end(end.family), TCP_LISTEN, end, any_end(end.family));
}

bool is_own_user(std::optional<uid_t> user) {
  return user == ::geteuid();
}

void check_server_user(std::optional<uid_t> user, const std::string& where) {
  if (is_own_user(user))
    return;
  throw std::runtime_error(
      where
      + (user ? " belongs to another user of this host (user id " + std::to_string(*user) + ")"
              : std::string(" is not known to belong to this user"))
      + ", and without keys a port serves only its own user; run this as that user, or give the "
        "server keys");
}

} // namespace troupe::env::wire
