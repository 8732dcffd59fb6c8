#pragma once

#include <string>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <doctest/doctest.h>

#include "env/sockets/descriptor.hpp"

/// A peer that implements ZeroMQ's protocol by hand.
namespace troupe::env::wire {

/// The greeting and READY command of a dealer.
inline std::string dealer_hello() {
  std::string text("\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL", 16);
  text.resize(64);
  return text
         + std::string("\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06"
                       "DEALER",
                       2 + 6 + 12 + 4 + 6);
}

/// One part of a message, of less than 2^31 bytes.
inline std::string part_of(const std::string& bytes, bool more) {
  std::string head(1, static_cast<char>(2 | (more ? 1 : 0)));
  for (int shift = 56; shift >= 0; shift -= 8)
    head += static_cast<char>(bytes.size() >> shift & 255);
  return head + bytes;
}

/// Connects to the endpoint; holds -1 if nothing accepts there.
inline Descriptor dial(const std::string& endpoint) {
  sockaddr_in tcp{};
  sockaddr_un path{};
  const bool is_path = endpoint.starts_with("ipc://");
  if (is_path) {
    path.sun_family = AF_UNIX;
    endpoint.copy(path.sun_path, sizeof path.sun_path - 1, 6);
  } else {
    tcp.sin_family = AF_INET;
    tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    tcp.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  }
  Descriptor made(::socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* address =
      is_path ? reinterpret_cast<const sockaddr*>(&path) : reinterpret_cast<const sockaddr*>(&tcp);
  const socklen_t size = is_path ? sizeof path : sizeof tcp;
  if (!made || ::connect(made.number(), address, size) != 0)
    return {};
  return made;
}

/// Returns false if the peer has closed the connection.
inline bool say_all(const Descriptor& socket, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const auto sent =
        ::send(socket.number(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent <= 0)
      return false;
    done += static_cast<std::size_t>(sent);
  }
  return true;
}

} // namespace troupe::env::wire
