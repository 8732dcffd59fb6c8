#include "experiments/commands/running/deployment.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

#include "collectives/rendezvous/cluster_spec.hpp"

namespace troupe::experiments::commands {
namespace {

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
  try {
    const auto endpoint = collectives::parse_endpoint(text);
    if (endpoint.host.find(':') == std::string::npos) {
      return {.host = endpoint.host, .port = static_cast<std::uint16_t>(endpoint.port)};
    }
  } catch (const std::invalid_argument&) { // reported with `what`
  }
  throw std::invalid_argument(what + " is \"" + text
                              + "\"; it must be HOST:PORT with a host name or an IPv4 address, and "
                                "a port from 1 to 65535, e.g. 10.0.0.1:4242");
}

std::string host_name() {
  char text[256] = {};
  ::gethostname(text, sizeof text - 1);
  return text;
}

std::string reachable_address(const std::string& listens, const std::string& own) {
  return listens == "0.0.0.0" || listens == "::" ? own : listens;
}

std::string address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), "9", &hints, &found); error != 0) {
    throw std::invalid_argument("host \"" + host + "\": " + ::gai_strerror(error)
                                + "; give a name or an IPv4 address that this host can reach");
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
