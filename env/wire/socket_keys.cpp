#include <algorithm>
#include <stdexcept>

#include <zmq.h>

#include "env/sockets/peer_user.hpp"
#include "env/wire/deployment_keys.hpp"
#include "env/wire/socket.hpp"
#include "env/wire/zap_handler.hpp"
#include "env/wire/zeromq.hpp"

namespace troupe::env::wire {

namespace {

using zeromq::set;

constexpr std::size_t kHandshakeBytes = 1024; // the limit also applies to ZeroMQ's own commands
constexpr std::size_t kSealBytes = 64;        // added to a part by encryption

void set_own_pair(void* socket, const KeyPair& own) {
  check_key(own.public_key, "own public key");
  check_key(own.secret_key, "own secret key");
  set(socket, ZMQ_CURVE_PUBLICKEY, own.public_key);
  set(socket, ZMQ_CURVE_SECRETKEY, own.secret_key);
}

void refuse_old_peers(void* socket) {
  set(socket, ZMQ_ZAP_DOMAIN, std::string(kPlainDomain));
}

} // namespace

/// Limits the bytes of a peer's frame on the wire.
void Socket::limit_frames(bool encrypted) {
  set(handle_, ZMQ_MAXMSGSIZE,
      static_cast<std::int64_t>(std::max(options_.max_frame_bytes, kHandshakeBytes)
                                + (encrypted ? kSealBytes : 0)));
}

void Socket::set_keys() {
  if (options_.server_keys && options_.client_keys)
    throw std::invalid_argument("a socket with server_keys and client_keys: a server binds, a "
                                "client connects; give it one of them");
  if (options_.client_keys)
    set_client_keys(*options_.client_keys);
  if (options_.server_keys)
    set_server_keys(*options_.server_keys);
}

void Socket::set_client_keys(const ClientKeys& keys) {
  check_key(keys.server, "server's public key");
  set_own_pair(handle_, keys.own);
  set(handle_, ZMQ_CURVE_SERVERKEY, keys.server);
  limit_frames(true);
}

void Socket::set_server_keys(const ServerKeys& keys) {
  for (const std::string& key : keys.allowed)
    check_key(key, "allowed public key");
  set(handle_, ZMQ_CURVE_SERVER, 1);
  set_own_pair(handle_, keys.own);
  limit_frames(true);
  if (!admission_)
    admission_ = context_->zap_handler().guard(handle_, keys.allowed,
                                               options_.on_stranger || !context_->keys()
                                                   ? options_.on_stranger
                                                   : context_->keys()->on_stranger);
  set(handle_, ZMQ_ZAP_DOMAIN, admission_->domain);
}

/// Makes later connections unencrypted: ZeroMQ uses the options as they are when it connects.
void Socket::set_no_keys() {
  if (!context_->keys() || has_own_keys())
    return; // its connections are never changed
  set(handle_, ZMQ_CURVE_SERVER, 0);
  limit_frames(false);
}

/// Returns the server's key for the endpoint, "" if clients already know it, or nothing if the
/// endpoint is not encrypted.
std::optional<std::string> Socket::use_keys_to_bind(const std::string& endpoint) {
  const auto& shared = context_->keys();
  // A socket bound off the loopback interface encrypts on loopback too.
  const bool stays_plain = is_loopback(endpoint) && !(shared && admission_);
  if (options_.server_keys)
    return "";
  if (stays_plain) {
    refuse_old_peers(handle_);
    return std::nullopt;
  }
  if (shared) {
    set_server_keys(server_keys(*shared));
    return shared->own.public_key;
  }
  if (!options_.allow_other_hosts)
    throw std::invalid_argument("endpoint " + endpoint
                                + " is not of this host's loopback interface and there are no keys "
                                  "to encrypt with; bind to tcp://127.0.0.1:*, or make keys: for a "
                                  "deployment with `troupe keys cluster DIR` (--keys DIR), for one "
                                  "socket with `troupe keys new DIR` (server_keys)");
  refuse_old_peers(handle_);
  return std::nullopt;
}

/// Returns the address to give to ZeroMQ.
std::string Socket::use_keys_to_connect(const std::string& endpoint) {
  const auto [address, server_key] = split_endpoint(endpoint);
  if (options_.client_keys)
    return address;
  if (context_->keys() && (!is_loopback(address) || !server_key.empty()))
    set_client_keys(client_keys(*context_->keys(), server_key));
  else if (server_key.empty()) {
    const bool is_checked = is_loopback(address) && !options_.allow_other_hosts;
    const auto user = is_checked ? server_user(address) : std::nullopt;
    if (user && user != 0U) // none: it may start later; root's may be a proxy, such as Docker's
      check_server_user(user, "the server at " + address);
    set_no_keys();
  } else
    throw std::invalid_argument("endpoint " + endpoint
                                + " is encrypted and this process has no keys; give it the "
                                  "deployment's folder of keys: --keys DIR");
  return address;
}

} // namespace troupe::env::wire
