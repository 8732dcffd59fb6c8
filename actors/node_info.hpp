#pragma once

#include "actors/messages.pb.h"
#include "actors/node_resources.hpp"

namespace troupe::actors {

/// What a node tells of itself, and backwards. Throws std::invalid_argument naming the node and
/// what makes no sense: a name or address that is empty or too long, processors twice.
wire::NodeInfo node_info(const NodeResources& node, std::uint64_t life);
NodeResources node_resources(const wire::NodeInfo& info);

} // namespace troupe::actors
