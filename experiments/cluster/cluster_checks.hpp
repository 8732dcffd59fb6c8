#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/config/cluster.pb.h"
#include "experiments/config/parse.hpp"

namespace troupe::experiments {

/// Checks the rules that concern several keys of a complete cluster, and texts that would break a
/// command, a script or a manifest. Returns the complaints. The rules of single keys must hold
/// already.
std::vector<std::string> check_cluster(const Cluster& cluster, const Origins& origins,
                                       const std::string& source);

/// Checks the keys of the launchers. Returns each faulty key with a complaint about it.
std::vector<std::pair<std::string, std::string>> check_launcher(const Cluster& cluster);

/// The required form of labels, for messages.
inline constexpr const char* kLabelForm = "write \"key=value\", e.g. \"zone=a\"";

/// Name of a node of a block: the block's own name if it has one node, otherwise name-0, name-1, …
std::string node_name(const ClusterNode& block, int index);

/// Addresses of the block's nodes: one for each node, or none at all. Throws std::invalid_argument.
std::vector<std::string> node_addresses(const ClusterNode& block);

/// Splits "key=value"; nothing if the text does not have this form.
std::optional<std::pair<std::string, std::string>> key_and_value(const std::string& text);

} // namespace troupe::experiments
