#include "env/wire/deployment_keys.hpp"

#include <algorithm>

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
  for (const char* prefix : {"tcp://localhost:", "tcp://[::1]:", "inproc://", "ipc://"})
    if (endpoint.starts_with(prefix))
      return true;
  // Digits and dots only, because a host name may look like 127.example.org.
  const auto end = endpoint.find_first_not_of("0123456789.", 10);
  return endpoint.starts_with("tcp://127.") && end != std::string::npos && endpoint[end] == ':';
}

} // namespace troupe::env::wire
