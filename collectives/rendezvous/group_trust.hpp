#pragma once

#include "collectives/communicator.hpp"
#include "collectives/rendezvous/process_topology.hpp"

namespace troupe::collectives {

/// The secret of a deployment's groups: the bytes of `curve.secret` in its folder of keys, which
/// only its owner may read. Throws std::invalid_argument naming file, rule and remedy.
std::string read_group_secret(const std::string& folder);

/// The options with what the place says of trust: the secret of its keys, the user's statement, and
/// that only the ranks read a launcher's rendezvous file. Throws like read_group_secret().
CommunicatorOptions with_trust(CommunicatorOptions options, const ProcessTopology& place);

} // namespace troupe::collectives
