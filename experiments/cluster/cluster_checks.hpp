#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/config/cluster.pb.h"
#include "experiments/config/parse.hpp"

namespace troupe::experiments {

/// Checks the rules that concern several keys of a complete cluster, and texts that would break a
/// command, a script or a manifest. Returns the complaints. The rules of single keys must hold.
std::vector<std::string> check_cluster(const Cluster& cluster, const Origins& origins,
                                       const std::string& source);

/// The keys of launchers, each with what is wrong with it.
std::vector<std::pair<std::string, std::string>> check_launcher(const Cluster& cluster);

/// What labels must be, for messages.
inline constexpr const char* kLabelForm = "write \"key=value\", e.g. \"zone=a\"";

/// Names of a node block's nodes: its own of one, name-0, name-1, … of several.
std::string node_name(const ClusterNode& block, int index);

/// Addresses of its nodes: as many as it counts, or none. Throws std::invalid_argument.
std::vector<std::string> node_addresses(const ClusterNode& block);

/// "key=value" in two; nothing when the text is none.
std::optional<std::pair<std::string, std::string>> key_and_value(const std::string& text);

} // namespace troupe::experiments
