#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

/// These functions return the user whose process has the other end of a connection within this
/// host. The answer comes from the kernel, so that a peer cannot lie: from SO_PEERCRED for a unix
/// socket; over the loopback interface from the owner of the peer's socket (sock_diag(7), or
/// /proc/net/tcp where that is missing). Any thread may call them. No call waits for a peer.
namespace troupe::env::wire {

/// Returns the user of an accepted connection's peer. Empty: the peer has left, or is on another
/// host.
std::optional<uid_t> peer_user(int accepted);

/// Returns the user of the server that a connection has reached. Empty: the server no longer
/// listens, or is on another host.
std::optional<uid_t> server_user(int connected);

/// Returns the user of the server that listens at tcp://<numeric address or localhost>:<port> of
/// this host. Empty: there is none, or the endpoint is of another kind.
std::optional<uid_t> server_user(const std::string& endpoint);

/// Whether `user` is the user of this process.
bool is_own_user(std::optional<uid_t> user);

/// Throws std::runtime_error if the server at `where` belongs to another user, or is not known to
/// belong to this process's user.
void check_server_user(std::optional<uid_t> user, const std::string& where);

} // namespace troupe::env::wire
