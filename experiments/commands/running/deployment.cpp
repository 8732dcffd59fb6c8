#include "experiments/commands/running/deployment.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <stdexcept>

namespace troupe::experiments::commands {
namespace {

constexpr int kMostPort = 65535;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

} // namespace

std::shared_ptr<const actors::ClusterKeys> read_keys(const std::string& folder) {
  if (!folder.empty()) {
    return std::make_shared<const actors::ClusterKeys>(
        actors::read_cluster_keys(folder, std::chrono::system_clock::now()));
  }
  return nullptr;
}

Endpoint parse_endpoint(const std::string& text, const std::string& what) {
  const auto colon = text.rfind(':');
  int port = 0;
  const char* const end = text.data() + text.size();
  const bool good = colon != std::string::npos && colon > 0
                    && std::from_chars(text.data() + colon + 1, end, port).ptr == end && port >= 1
                    && port <= kMostPort;
  if (!good) {
    throw std::invalid_argument(what + " is \"" + text
                                + "\"; it must be HOST:PORT with a port from 1 to 65535, e.g. "
                                  "10.0.0.1:4242");
  }
  return {.host = text.substr(0, colon), .port = static_cast<std::uint16_t>(port)};
}

std::string host_name() {
  char text[256] = {};
  ::gethostname(text, sizeof text - 1);
  return text;
}

std::string address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), "9", &hints, &found); error != 0) {
    throw std::invalid_argument("host \"" + host + "\": " + ::gai_strerror(error)
                                + "; give an address that this host can reach");
  }
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  socklen_t size = sizeof own;
  char text[INET_ADDRSTRLEN] = "127.0.0.1";
  // Connecting a datagram socket sends nothing; it only selects the route.
  if (socket >= 0 && ::connect(socket, list->ai_addr, list->ai_addrlen) == 0
      && ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) == 0) {
    ::inet_ntop(AF_INET, &own.sin_addr, text, sizeof text);
  }
  if (socket >= 0) {
    ::close(socket);
  }
  return text;
}

} // namespace troupe::experiments::commands
