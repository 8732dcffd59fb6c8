#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "actors/supervision/restart_budget.hpp"
#include "experiments/launchers/launcher.hpp"

namespace troupe::experiments::commands {

/// Decides when a launcher starts the nodes of a cluster: all at once, and each one that is lost
/// again after a delay, up to `restarts` times within an hour. Each node has a budget of its own,
/// so a host that cannot be reached uses up no other's. Times are in seconds of any clock.
class NodeRestarts {
public:
  NodeRestarts(const std::vector<launchers::NodeStart>& nodes, int restarts);

  /// Returns the nodes to start at `now`, each once.
  std::vector<launchers::NodeStart> due(double now);
  /// The node has ended or could not be started. Returns false if it is given up.
  bool lose(const std::string& node, double now);

private:
  struct Node {
    launchers::NodeStart start;
    std::optional<double> start_at = -std::numeric_limits<double>::infinity();
    actors::RestartBudget losses = {};
  };
  std::vector<Node> nodes_;
  actors::RestartBudget::Limits limits_;
};

} // namespace troupe::experiments::commands
