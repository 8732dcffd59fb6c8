#pragma once

#include <memory>
#include <string>

#include "actors/remoting/cluster_keys.hpp"

namespace troupe::experiments::commands {

/// Reads the keys in a folder that `troupe keys cluster` wrote; null for an empty path. Throws
/// std::invalid_argument that says what is wrong with them.
std::shared_ptr<const actors::ClusterKeys> read_keys(const std::string& folder);

/// The parts of "HOST:PORT", as written in flags and variables. parse_endpoint() throws
/// std::invalid_argument that names `what`.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
};
Endpoint parse_endpoint(const std::string& text, const std::string& what);

/// The name of this host.
std::string host_name();

/// The address of this host on the route to `host`, at which `host` can reach it. Throws
/// std::invalid_argument if `host` is unknown.
std::string address_towards(const std::string& host);

} // namespace troupe::experiments::commands
