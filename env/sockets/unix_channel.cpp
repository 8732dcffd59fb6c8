#include "env/sockets/unix_channel.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>

namespace troupe::env::wire {

namespace {

constexpr std::size_t kMostDescriptors = 2; // per packet
constexpr int kBacklog = 4096;

struct Address {
  explicit Address(const std::string& name) {
    un.sun_family = AF_UNIX;
    const std::size_t count = std::min(name.size(), sizeof un.sun_path - 1);
    std::memcpy(un.sun_path + 1, name.data(), count); // the leading zero makes the name abstract
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
  }
  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&un); }
  sockaddr_un un{};
  socklen_t size = 0;
};

Descriptor open_socket() {
  return Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void take_descriptors(msghdr& message, Packet& packet) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part))
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
      for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
        int number = -1;
        std::memcpy(&number, reinterpret_cast<unsigned char*>(part) + at, sizeof number);
        packet.descriptors.emplace_back(number);
      }
}

} // namespace

Descriptor listen_at(const std::string& name) {
  Descriptor made = open_socket();
  const Address address(name);
  if (!made || ::bind(made.number(), address.generic(), address.size) != 0
      || ::listen(made.number(), kBacklog) != 0)
    return {};
  return made;
}

Descriptor accept_from(const Descriptor& listener) {
  return Descriptor(::accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

Descriptor connect_to(const std::string& name) {
  Descriptor made = open_socket();
  const Address address(name);
  if (!made || ::connect(made.number(), address.generic(), address.size) != 0)
    return {};
  return made;
}

bool send_packet(const Descriptor& connection, std::span<const std::byte> bytes,
                 std::span<const int> descriptors) {
  iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()}; // never written to
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!descriptors.empty() && descriptors.size() <= kMostDescriptors) {
    message.msg_control = space.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = -1;
  do
    sent = ::sendmsg(connection.number(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

Arrival receive_packet(const Descriptor& connection, std::size_t limit, Packet& packet) {
  packet.bytes.resize(limit);
  packet.descriptors.clear();
  iovec data{packet.bytes.data(), packet.bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  ssize_t got = -1;
  do
    got = ::recvmsg(connection.number(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got < 0)
    return errno == EAGAIN || errno == EWOULDBLOCK ? Arrival::nothing : Arrival::end;
  take_descriptors(message, packet);
  if (got == 0 || (message.msg_flags & MSG_TRUNC) != 0)
    return Arrival::end;
  packet.bytes.resize(static_cast<std::size_t>(got));
  return Arrival::packet;
}

} // namespace troupe::env::wire
