#include "experiments/commands/cluster/node_restarts.hpp"

#include <algorithm>
#include <utility>

namespace troupe::experiments::commands {

NodeRestarts::NodeRestarts(const std::vector<launchers::NodeStart>& nodes, int restarts)
    : limits_{.restarts = restarts, .minutes = 60} {
  for (const launchers::NodeStart& start : nodes) {
    nodes_.push_back({.start = start});
  }
}

std::vector<launchers::NodeStart> NodeRestarts::due(double now) {
  std::vector<launchers::NodeStart> starts;
  for (Node& node : nodes_) {
    if (node.start_at && *node.start_at <= now) {
      node.start_at.reset();
      starts.push_back(node.start);
    }
  }
  return starts;
}

bool NodeRestarts::lose(const std::string& node, double now) {
  const auto lost = std::find_if(nodes_.begin(), nodes_.end(),
                                 [&](const Node& one) { return one.start.name == node; });
  if (lost == nodes_.end() || !lost->losses.die(now, limits_)) {
    return false;
  }
  lost->start_at = now + lost->losses.delay_seconds();
  return true;
}

} // namespace troupe::experiments::commands
