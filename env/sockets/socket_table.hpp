#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>

/// These functions return what the kernel knows about the TCP sockets of this network namespace.
/// Any thread may call them. No call waits for another process.
namespace troupe::env::wire {

/// One end of a connection. Address and port of zero mean any: the far end of a listening socket.
struct TcpEnd {
  int family = AF_UNSPEC;
  std::array<std::uint32_t, 4> address{}; // in network byte order; one word for IPv4
  std::uint16_t port = 0;                 // in host byte order
  std::size_t words() const { return family == AF_INET6 ? 4 : 1; }
};

TcpEnd tcp_end(const sockaddr_storage& from); // AF_UNSPEC unless it is an IP address

struct SocketInfo {
  int state = 0; // for example TCP_ESTABLISHED
  uid_t user = 0;
};

/// Returns the socket at `near` that is connected to `far`, by one request to sock_diag(7). Empty:
/// there is no such socket, or the kernel does not support the request.
std::optional<SocketInfo> ask_for_socket(const TcpEnd& near, const TcpEnd& far);

/// As ask_for_socket(), but reads /proc/net/tcp, which has one line per socket.
std::optional<SocketInfo> find_socket(const TcpEnd& near, const TcpEnd& far);

} // namespace troupe::env::wire
