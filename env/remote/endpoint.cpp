#include <optional>

#include "env/remote/protocol.hpp"
#include "env/text/number_in.hpp"
#include "env/wire/deployment_keys.hpp"

namespace troupe::env::remote {

namespace {

constexpr std::size_t kMaxPath = 97; // bytes; leaves room for ".heartbeat" within a socket path

struct Tcp {
  std::string host;
  std::string port;
};

std::optional<Tcp> parse_tcp(const std::string& endpoint) {
  constexpr std::string_view kPrefix = "tcp://";
  const auto colon = endpoint.rfind(':');
  if (!endpoint.starts_with(kPrefix) || colon < kPrefix.size())
    return std::nullopt;
  return Tcp{endpoint.substr(kPrefix.size(), colon - kPrefix.size()), endpoint.substr(colon + 1)};
}

} // namespace

void check_endpoint(const std::string& endpoint, bool allow_other_hosts, bool port_may_be_any) {
  const std::string what = "endpoint '" + printable(endpoint, kMaxName) + "'";
  if (endpoint.starts_with("ipc://")) {
    const std::string path = endpoint.substr(6);
    if (path.empty() || path.size() > kMaxPath || path.find('\0') != std::string::npos)
      throw std::invalid_argument(what
                                  + ": the path of a socket must have 1 to 97 bytes; choose a "
                                    "shorter one, for example in a folder below /tmp");
    return;
  }
  const auto tcp = parse_tcp(endpoint);
  const bool any = tcp && port_may_be_any && tcp->port == "*";
  if (!tcp || tcp->host.empty() || (!any && number_in<std::uint16_t>(tcp->port).value_or(0) == 0))
    throw std::invalid_argument(what
                                + " must be ipc://<path> or tcp://<host>:<port>, for example "
                                  "ipc:///tmp/environments or tcp://127.0.0.1:5555");
  if (!allow_other_hosts && !wire::is_loopback(endpoint))
    throw std::invalid_argument(what
                                + " is not on this host's loopback interface, and nothing is "
                                  "encrypted; give keys, use 127.0.0.1 or an ssh tunnel, or set "
                                  "allow_other_hosts on a network that you trust");
}

std::string heartbeat_endpoint(const std::string& endpoint, std::uint16_t port) {
  if (endpoint.starts_with("ipc://"))
    return endpoint + ".heartbeat";
  return endpoint.substr(0, endpoint.rfind(':') + 1) + std::to_string(port);
}

std::string heartbeat_bind(const std::string& endpoint) {
  if (endpoint.starts_with("ipc://"))
    return endpoint + ".heartbeat";
  return endpoint.substr(0, endpoint.rfind(':') + 1) + "*";
}

} // namespace troupe::env::remote
