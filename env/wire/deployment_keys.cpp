#include "env/wire/deployment_keys.hpp"

#include <algorithm>
#include <string_view>

#include <arpa/inet.h>

namespace troupe::env::wire {

std::string with_server_key(const std::string& endpoint, const std::string& public_key) {
  return endpoint + "#" + public_key;
}

KeyedEndpoint split_endpoint(const std::string& endpoint) {
  const auto at = endpoint.find('#');
  // Only for tcp, because other addresses may contain a #.
  if (at == std::string::npos || !endpoint.starts_with("tcp://"))
    return {endpoint, ""};
  KeyedEndpoint parts{endpoint.substr(0, at), endpoint.substr(at + 1)};
  check_key(parts.server_key, "endpoint " + parts.address + ", what follows its #");
  return parts;
}

ServerKeys server_keys(const DeploymentKeys& keys) {
  ServerKeys made{keys.own, {keys.own.public_key}};
  for (const KeyPair& pair : keys.retired)
    made.allowed.insert(pair.public_key);
  return made;
}

ClientKeys client_keys(const DeploymentKeys& keys, const std::string& server_key) {
  if (server_key.empty())
    return {keys.own, keys.own.public_key};
  // A server started before a rotation has a retired key and accepts only the pair of that time.
  // Later servers accept the current pair.
  const auto old = std::find_if(keys.retired.begin(), keys.retired.end(),
                                [&](const KeyPair& pair) { return pair.public_key == server_key; });
  return {old != keys.retired.end() ? *old : keys.own, server_key};
}

bool is_loopback(const std::string& endpoint) {
  if (endpoint.starts_with("inproc://") || endpoint.starts_with("ipc://"))
    return true;
  constexpr std::string_view kPrefix = "tcp://";
  const std::string address = endpoint.substr(0, endpoint.find('#'));
  const auto colon = address.rfind(':');
  if (!address.starts_with(kPrefix) || colon < kPrefix.size())
    return false;
  const std::string host = address.substr(kPrefix.size(), colon - kPrefix.size());
  in_addr number{}; // a host name may look like 127.example.org
  return host == "localhost" || host == "[::1]"
         || (host.starts_with("127.") && ::inet_pton(AF_INET, host.c_str(), &number) == 1);
}

} // namespace troupe::env::wire
