#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "collectives/communicator.hpp"
#include "collectives/mesh/secure_socket.hpp"

namespace troupe::collectives {

/// Throws std::invalid_argument with the remedy where other hosts reach `host`, this process's
/// address, and nothing would keep them out of the group.
void require_trust(const GroupTrust& trust, const std::string& host);

/// Throws std::invalid_argument unless `host` is on loopback or the user vouches for the network,
/// for `what` ("NCCL"), which neither encrypts nor authenticates.
void require_trusted_network(const GroupTrust& trust, const std::string& host,
                             const std::string& what);

/// The key of one mesh of connections: derived from random bytes that rank 0 leaves in the store
/// and from the deployment's secret, if there is one. Waits for rank 0. Throws std::runtime_error.
GroupKey share_group_key(c10d::Store& store, int rank, const GroupTrust& trust);

/// HKDF-SHA256 of random bytes and a secret.
GroupKey derive_group_key(std::span<const std::byte> random, const std::string& secret);

} // namespace troupe::collectives
