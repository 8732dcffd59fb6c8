#pragma once

#include <functional>
#include <string>
#include <vector>

#include "env/wire/keys.hpp"

namespace troupe::env::wire {

/// The keys that all processes of a deployment share. A Context with these keys encrypts every tcp
/// endpoint off the loopback interface.
struct DeploymentKeys {
  KeyPair own;
  std::vector<KeyPair> retired; // still accepted while old processes are restarted one by one
  /// The default of SocketOptions::on_stranger for the sockets of the Context.
  std::function<void(const std::string&)> on_stranger{};
};

/// Returns `endpoint` with the server's public key appended, in the form that Socket::bind()
/// returns: "tcp://10.0.0.1:7400#<key>".
std::string with_server_key(const std::string& endpoint, const std::string& public_key);

struct KeyedEndpoint {
  std::string address;    // "tcp://10.0.0.1:7400", for ZeroMQ
  std::string server_key; // "" where the endpoint names none
};
/// Throws std::invalid_argument if the text after the # is not a key.
KeyedEndpoint split_endpoint(const std::string& endpoint);

/// The keys of a server: its pair and the public keys of the allowed peers.
ServerKeys server_keys(const DeploymentKeys& keys);

/// The keys of a client for the server with the public key `server_key` ("": the deployment's key).
/// The sender of an endpoint vouches for its key, so accept endpoints only from the head.
ClientKeys client_keys(const DeploymentKeys& keys, const std::string& server_key);

/// Whether the endpoint is tcp on 127.*, localhost or ::1, or uses a transport within the host.
bool is_loopback(const std::string& endpoint);

} // namespace troupe::env::wire
