#pragma once

#include "actors/placement/node_resources.hpp"
#include "actors/protocol/messages.pb.h"

namespace troupe::actors {

/// Converts a node's description to and from its message. Both throw std::invalid_argument naming
/// the node and the error: a name or address that is empty or too long, or duplicate processors.
wire::NodeInfo node_info(const NodeResources& node, std::uint64_t life);
NodeResources node_resources(const wire::NodeInfo& info);

} // namespace troupe::actors
