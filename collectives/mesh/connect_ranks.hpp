#pragma once

#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "collectives/communicator.hpp"
#include "collectives/mesh/secure_socket.hpp"

namespace troupe::collectives {

struct ConnectOptions {
  std::string host = "127.0.0.1"; // address at which the other ranks reach this process
  GroupTrust trust{};
  Deadline deadline{};
  std::size_t read_bytes = SecureSocket::kFewBytes; // most bytes read from a connection at once
  /// Stop encrypting after the greeting if the host is on loopback or the user trusts the network.
  /// All ranks must agree on it.
  bool clear_if_trusted = false;
};

/// Connects every two ranks of a group. The ranks find each other's addresses and the random part
/// of their key in `store`, which must contain no other group's entries. Returns the connections,
/// [rank]; this rank's own entry is empty. Callers without the key are turned away; at most 256
/// connections at a time may be unauthenticated, for 5 s each. Throws std::invalid_argument if
/// options.trust does not suffice for the host. Throws std::runtime_error naming the ranks that did
/// not arrive by the deadline, that expect another group size or that have another key.
std::vector<SecureSocket> connect_ranks(c10d::Store& store, int rank, int size,
                                        const ConnectOptions& options);

} // namespace troupe::collectives
