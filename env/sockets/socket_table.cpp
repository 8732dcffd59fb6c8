#include "env/sockets/socket_table.hpp"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>

#include "env/sockets/descriptor.hpp"

namespace troupe::env::wire {

namespace {

struct DiagQuestion {
  nlmsghdr head{};
  inet_diag_req_v2 body{};
};

/// Formats an end as /proc/net/tcp and tcp6 do.
std::string table_text(const TcpEnd& end) {
  std::array<char, 16> word{};
  std::string text;
  for (std::size_t i = 0; i < end.words(); ++i) {
    std::snprintf(word.data(), word.size(), "%08X", end.address[i]);
    text += word.data();
  }
  std::snprintf(word.data(), word.size(), ":%04X", end.port);
  return text + word.data();
}

} // namespace

TcpEnd tcp_end(const sockaddr_storage& from) {
  TcpEnd made{.family = from.ss_family};
  if (from.ss_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, &from, sizeof six);
    std::memcpy(made.address.data(), &six.sin6_addr, sizeof six.sin6_addr);
    made.port = ntohs(six.sin6_port);
  } else if (from.ss_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &from, sizeof four);
    made.address[0] = four.sin_addr.s_addr;
    made.port = ntohs(four.sin_port);
  }
  return made;
}

std::optional<SocketInfo> ask_for_socket(const TcpEnd& near, const TcpEnd& far) {
  const Descriptor kernel(
      ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  DiagQuestion question;
  question.head.nlmsg_len = sizeof question;
  question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.head.nlmsg_flags = NLM_F_REQUEST;
  question.body.sdiag_family = static_cast<std::uint8_t>(near.family);
  question.body.sdiag_protocol = IPPROTO_TCP;
  question.body.idiag_states = std::numeric_limits<std::uint32_t>::max();
  question.body.id.idiag_sport = htons(near.port);
  question.body.id.idiag_dport = htons(far.port);
  std::memcpy(question.body.id.idiag_src, near.address.data(), sizeof near.address);
  std::memcpy(question.body.id.idiag_dst, far.address.data(), sizeof far.address);
  question.body.id.idiag_cookie[0] = question.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  alignas(nlmsghdr) std::array<char, 4096> answer{};
  if (!kernel || ::send(kernel.number(), &question, sizeof question, 0) != sizeof question)
    return std::nullopt;
  const ssize_t got = ::recv(kernel.number(), answer.data(), answer.size(), 0); // already there
  nlmsghdr head{};
  inet_diag_msg body{};
  if (got < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof body))
    return std::nullopt;
  std::memcpy(&head, answer.data(), sizeof head);
  if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
    return std::nullopt; // no such socket, or the kernel does not support the request
  std::memcpy(&body, answer.data() + NLMSG_HDRLEN, sizeof body);
  return SocketInfo{.state = body.idiag_state, .user = body.idiag_uid};
}

std::optional<SocketInfo> find_socket(const TcpEnd& near, const TcpEnd& far) {
  std::ifstream table(near.family == AF_INET6 ? "/proc/net/tcp6" : "/proc/net/tcp");
  TcpEnd anywhere = near; // matches a server that listens at every address
  anywhere.address = {};
  const bool listens = far.port == 0;
  const std::string here = table_text(near), there = table_text(far);
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retries;
    uid_t user = 0;
    if (!(words >> number >> local >> remote >> state >> queues >> timer >> retries >> user)
        || remote != there || (local != here && !(listens && local == table_text(anywhere))))
      continue;
    return SocketInfo{.state = std::stoi(state, nullptr, 16), .user = user};
  }
  return std::nullopt;
}

} // namespace troupe::env::wire
