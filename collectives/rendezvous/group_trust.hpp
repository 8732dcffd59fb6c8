#pragma once

#include "collectives/communicator.hpp"
#include "collectives/rendezvous/process_topology.hpp"

namespace troupe::collectives {

/// Returns the secret of a deployment's groups: the bytes of `curve.secret` in its folder of keys,
/// which only its owner may read. Throws std::invalid_argument naming the file, rule and remedy.
std::string read_group_secret(const std::string& folder);

/// Returns the options extended by what `place` says about trust: the secret in its keys, the
/// user's statement that the network is trusted, and whether only the ranks can read the launcher's
/// rendezvous file. Throws like read_group_secret().
CommunicatorOptions with_trust(CommunicatorOptions options, const ProcessTopology& place);

} // namespace troupe::collectives
