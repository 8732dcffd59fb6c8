#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

/// Whose process has the other end of a connection within this host. The kernel tells it, so that
/// a peer cannot lie: by SO_PEERCRED of a unix socket; over the loopback interface by the owner of
/// the peer's socket (sock_diag(7), or /proc/net/tcp where that is not there). Any thread; no call
/// waits for a peer.
namespace troupe::env::wire {

/// Of an accepted connection. Empty: the peer has left, or is not of this host.
std::optional<uid_t> peer_user(int accepted);

/// Of the server that a connection has reached. Empty: it listens no more, or is not of this host.
std::optional<uid_t> server_user(int connected);

/// Of the server that listens at tcp://<numbers or localhost>:<port> of this host. Empty: none, or
/// another kind of endpoint.
std::optional<uid_t> server_user(const std::string& endpoint);

/// Whether it is this process's.
bool is_own_user(std::optional<uid_t> user);

/// Throws std::runtime_error if the server at `where` is another user's, or not known to be this
/// process's.
void check_server_user(std::optional<uid_t> user, const std::string& where);

} // namespace troupe::env::wire
