#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "collectives/communicator.hpp"
#include "collectives/mesh/secure_socket.hpp"

namespace troupe::collectives {

/// Throws std::invalid_argument with the remedy if other hosts can reach `host` and nothing would
/// keep them out of the group. `what` says what the host is.
void require_trust(const GroupTrust& trust, const std::string& host,
                   const std::string& what = "the address of this rank");

/// Throws std::invalid_argument unless `host` is on loopback or the user trusts the network. `what`
/// (e.g. "NCCL") names the transport, which neither encrypts nor authenticates.
void require_trusted_network(const GroupTrust& trust, const std::string& host,
                             const std::string& what);

/// Returns the key of one mesh of connections. It is derived from random bytes that rank 0 puts in
/// the store and from the deployment's secret, if there is one. Waits for rank 0. Throws
/// std::runtime_error.
GroupKey share_group_key(c10d::Store& store, int rank, const GroupTrust& trust);

/// Derives a key from random bytes and a secret with HKDF-SHA256.
GroupKey derive_group_key(std::span<const std::byte> random, const std::string& secret);

} // namespace troupe::collectives
