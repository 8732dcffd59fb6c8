#pragma once

#include <utility>
#include <vector>

#include "experiments/launchers/child_processes.hpp"
#include "experiments/launchers/launcher.hpp"

namespace troupe::experiments::launchers {

/// Runs the nodes as processes on this host. They die with this process.
class LocalLauncher : public Launcher {
public:
  explicit LocalLauncher(LaunchSettings settings);
  std::vector<NodeEnd> poll() override;
  void stop(std::chrono::milliseconds grace) override;

private:
  void start_nodes(const std::vector<NodeStart>& nodes, const std::stop_token& ended) override;
  std::vector<std::string> words(const NodeStart& node) const;

  LaunchSettings settings_;
  std::vector<std::pair<ChildProcesses::Id, NodeStart>> running_;
  std::vector<NodeEnd> ended_;
  ChildProcesses children_; // destroyed first, because its thread calls settings_.output
};

} // namespace troupe::experiments::launchers
