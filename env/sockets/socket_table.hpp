#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>

/// What the kernel knows of the TCP sockets of this network namespace. Any thread; no call waits
/// for another process.
namespace troupe::env::wire {

/// An end of a connection. Without address and port: any, the far end of a socket that listens.
struct TcpEnd {
  int family = AF_UNSPEC;
  std::array<std::uint32_t, 4> address{}; // in the network's order; one word of IPv4
  std::uint16_t port = 0;                 // in this host's order
  std::size_t words() const { return family == AF_INET6 ? 4 : 1; }
};

TcpEnd tcp_end(const sockaddr_storage& from); // AF_UNSPEC where it is no address of IP

struct SocketInfo {
  int state = 0; // as TCP_ESTABLISHED
  uid_t user = 0;
};

/// Of the socket at `near` that is connected to `far`: one answer by sock_diag(7). Empty: there is
/// no such socket, or the kernel answers no such questions.
std::optional<SocketInfo> ask_for_socket(const TcpEnd& near, const TcpEnd& far);

/// The same from /proc/net/tcp, which has a line for every socket.
std::optional<SocketInfo> find_socket(const TcpEnd& near, const TcpEnd& far);

} // namespace troupe::env::wire
