#pragma once

#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "collectives/communicator.hpp"
#include "collectives/mesh/secure_socket.hpp"

namespace troupe::collectives {

/// "rank 3", for messages.
std::string rank_name(int rank);

struct ConnectOptions {
  std::string host = "127.0.0.1"; // this process's address that the others reach
  GroupTrust trust{};
  Deadline deadline{};
  std::size_t read_bytes = SecureSocket::kFewBytes; // of a connection, at once
  /// After the greeting nothing is encrypted, where the host is on loopback or the user vouches for
  /// the network. All ranks agree on it.
  bool clear_if_trusted = false;
};

/// Connects every two ranks of a group, which find each other's addresses and the random part of
/// their key in `store`, empty of other groups. Returns the connections as [rank]; the own one is
/// empty. Who does not know the key is turned away; at most 256 connections at a time have not
/// shown it, 5 s each. Throws std::invalid_argument where options.trust does not suffice for the
/// host, std::runtime_error naming the ranks that did not come by the deadline, that came for
/// another group size, or that have another key.
std::vector<SecureSocket> connect_ranks(c10d::Store& store, int rank, int size,
                                        const ConnectOptions& options);

} // namespace troupe::collectives
