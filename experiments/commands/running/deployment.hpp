#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "actors/remoting/cluster_keys.hpp"

namespace troupe::experiments::commands {

/// Reads the keys in a folder that `troupe keys cluster` wrote; null for an empty path. Throws
/// std::invalid_argument that says what is wrong with them.
std::shared_ptr<const actors::ClusterKeys> read_keys(const std::string& folder);

/// The parts of "HOST:PORT", as written in flags and variables, with a name or an IPv4 address.
/// parse_endpoint() throws std::invalid_argument that names `what`.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
};
Endpoint parse_endpoint(const std::string& text, const std::string& what);

/// The name of this host.
std::string host_name();

/// The address at which others reach a server of this host that listens at `listens`: `own` if that
/// is all addresses of the host (0.0.0.0 or ::).
std::string reachable_address(const std::string& listens, const std::string& own = host_name());

/// The IPv4 address of this host on the route to `host`, at which `host` can reach it. Throws
/// std::invalid_argument if `host` is unknown.
std::string address_towards(const std::string& host);

} // namespace troupe::experiments::commands
