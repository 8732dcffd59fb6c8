#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "env/sockets/descriptor.hpp"

namespace troupe {

/// TCP ports that only this process uses, for servers whose port must be known before they run. A
/// test that can bind port 0 and ask for the number should do that. The ports are below the range
/// that Linux assigns itself. A range belongs to the process that holds the abstract socket with
/// its name. Like the ports, that socket belongs to the network namespace, and it ends with the
/// process.
class PortRange {
public:
  PortRange() {
    for (int i = 0; i < kRanges; ++i) {
      const int range = (::getpid() + i) % kRanges;
      if (reserve(range)) {
        first_ = kFirst + range * kPorts;
        return;
      }
    }
    throw std::runtime_error("every port range for tests is reserved");
  }

  /// Returns the least recently returned port of this range on which no socket listens.
  int next() {
    for (int i = 0; i < kPorts; ++i)
      if (const int port = first_ + given_++ % kPorts; is_free(port))
        return port;
    throw std::runtime_error("somebody listens on every port of this process's range");
  }

private:
  static constexpr int kFirst = 10'000;
  static constexpr int kPorts = 64;
  static constexpr int kRanges = 340; // up to 31,759; Linux begins at 32,768

  bool reserve(int range) {
    owner_ = env::wire::Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    const std::string text = "troupe_test_ports_" + std::to_string(range);
    std::memcpy(name.sun_path + 1, text.data(), text.size()); // a leading 0 makes it abstract
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    return ::bind(owner_.number(), reinterpret_cast<const sockaddr*>(&name), size) == 0;
  }

  static bool is_free(int port) {
    const env::wire::Descriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(probe.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return ::bind(probe.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  env::wire::Descriptor owner_;
  int first_ = 0;
  int given_ = 0;
};

/// The next port of this process's range.
inline int reserved_port() {
  static PortRange range;
  return range.next();
}

} // namespace troupe
