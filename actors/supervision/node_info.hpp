#pragma once

#include "actors/placement/node_resources.hpp"
#include "actors/protocol/messages.pb.h"

namespace troupe::actors {

/// Converts a node's description to a message.
wire::NodeInfo node_info(const NodeResources& node, std::uint64_t life);

/// Converts a message from a node, which is untrusted input, to its description. Throws
/// std::invalid_argument if the name or address is empty, too long or has invalid characters, or if
/// the resources are malformed or more than a host can have.
NodeResources node_resources(const wire::NodeInfo& info);

} // namespace troupe::actors
