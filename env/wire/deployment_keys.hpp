#pragma once

#include <functional>
#include <string>
#include <vector>

#include "env/wire/keys.hpp"

namespace troupe::env::wire {

/// The keys that all processes of a deployment share: who has the pair belongs to it. A Context
/// that has them encrypts every tcp endpoint off the loopback interface.
struct DeploymentKeys {
  KeyPair own;
  std::vector<KeyPair> retired; // still good while old processes are restarted one by one
  /// Told of the first stranger at each socket that has no listener of its own; as
  /// SocketOptions::on_stranger.
  std::function<void(const std::string&)> on_stranger{};
};

/// `endpoint` with its server's public key, as Socket::bind gives it: "tcp://10.0.0.1:7400#<key>".
std::string with_server_key(const std::string& endpoint, const std::string& public_key);

struct KeyedEndpoint {
  std::string address;    // "tcp://10.0.0.1:7400", for ZeroMQ
  std::string server_key; // "" where the endpoint names none
};
/// Throws std::invalid_argument where what follows the # is no key.
KeyedEndpoint split_endpoint(const std::string& endpoint);

/// A server's: its own pair, and who may connect.
ServerKeys server_keys(const DeploymentKeys& keys);

/// Of a client, for the server that has `server_key` ("": the deployment's own). Whoever tells an
/// endpoint vouches for the key in it: take endpoints from the head alone.
ClientKeys client_keys(const DeploymentKeys& keys, const std::string& server_key);

/// tcp on 127.*, localhost or ::1, or a transport that never leaves the host.
bool is_loopback(const std::string& endpoint);

} // namespace troupe::env::wire
