#pragma once

#include <memory>
#include <string>

#include "actors/remoting/cluster_keys.hpp"

namespace troupe::experiments::commands {

/// The keys in a folder of `troupe keys cluster`; null for an empty path. Throws
/// std::invalid_argument that names what is wrong with them.
std::shared_ptr<const actors::ClusterKeys> read_keys(const std::string& folder);

/// "HOST:PORT", as flags and variables give it. Throws std::invalid_argument with `what`.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
};
Endpoint parse_endpoint(const std::string& text, const std::string& what);

/// This host's.
std::string host_name();

/// The address of this host that is used towards another: what others reach it at. Throws
/// std::invalid_argument when the other is unknown.
std::string address_towards(const std::string& host);

} // namespace troupe::experiments::commands
