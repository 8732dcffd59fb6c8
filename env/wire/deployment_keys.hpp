#pragma once

#include <functional>
#include <string>
#include <vector>

#include "env/wire/keys.hpp"

namespace troupe::env::wire {

/// The keys that all processes of a deployment share. A Context that has them encrypts every tcp
/// endpoint off the loopback interface.
struct DeploymentKeys {
  KeyPair own;
  std::vector<KeyPair> retired; // still accepted while old processes are restarted one by one
  /// As SocketOptions::on_stranger, for each socket without one.
  std::function<void(const std::string&)> on_stranger{};
};

/// `endpoint` with its server's public key, as Socket::bind returns it:
/// "tcp://10.0.0.1:7400#<key>".
std::string with_server_key(const std::string& endpoint, const std::string& public_key);

struct KeyedEndpoint {
  std::string address;    // "tcp://10.0.0.1:7400", for ZeroMQ
  std::string server_key; // "" where the endpoint names none
};
/// Throws std::invalid_argument when the text after the # is no key.
KeyedEndpoint split_endpoint(const std::string& endpoint);

/// Keys of a server: its pair and the allowed peers.
ServerKeys server_keys(const DeploymentKeys& keys);

/// Keys of a client for the server with `server_key` ("": the deployment's). The sender of an
/// endpoint vouches for its key: accept endpoints from the head only.
ClientKeys client_keys(const DeploymentKeys& keys, const std::string& server_key);

/// Whether it is tcp on 127.*, localhost or ::1, or a transport within the host.
bool is_loopback(const std::string& endpoint);

} // namespace troupe::env::wire
