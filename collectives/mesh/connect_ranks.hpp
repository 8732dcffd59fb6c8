#pragma once

#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "collectives/mesh/socket.hpp"

namespace troupe::collectives {

/// "rank 3", for messages.
std::string rank_name(int rank);

/// Connects every two ranks of a group, which find each other's addresses in `store`. `host` is
/// this process's address that the others reach. Returns the connections as [rank]; the own one is
/// empty. A connection that does not know the group's token, which only readers of the store know,
/// is closed. Throws std::runtime_error naming the ranks that did not come by the deadline, or that
/// came for another group size.
std::vector<Socket> connect_ranks(c10d::Store& store, int rank, int size, const std::string& host,
                                  Deadline deadline);

} // namespace troupe::collectives
