#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "experiments/cluster/cluster.hpp"
#include "experiments/launchers/launcher.hpp"
#include "experiments/run_folder/rotated_file.hpp"

namespace troupe::experiments::commands {

/// Keeps the nodes of a launch running: restarts a node that ends, with growing delays, within the
/// cluster's budget. Writes their output to a file of the run. Its end ends them.
class StartedNodes {
public:
  StartedNodes(Cluster cluster, LauncherKind kind, const std::filesystem::path& run);
  ~StartedNodes();
  StartedNodes(const StartedNodes&) = delete;
  StartedNodes& operator=(const StartedNodes&) = delete;

  /// Once: for a head that listens at that port, where the cluster does not name it.
  void start(int port);

private:
  void log(const std::string& node, const std::string& line);
  void watch(const std::stop_token& ended);

  Cluster cluster_;
  LauncherKind kind_;
  std::mutex mutex_; // of log_
  RotatedFile log_;
  std::unique_ptr<launchers::Launcher> launcher_;
  std::vector<launchers::NodeStart> starts_;
  std::mutex sleep_;
  std::condition_variable_any wake_;
  std::jthread watcher_;
};

using MakeNodes = std::function<std::unique_ptr<StartedNodes>(const std::filesystem::path& run)>;

/// The body of the process that starts the nodes of a watched head (HeadLife::starter): they
/// outlive that head. Does what a NodeStarter at the other end of `socket` asks for.
void serve_node_starts(int socket, const MakeNodes& make);

/// The head's side.
class NodeStarter {
public:
  /// `socket`: -1: the nodes are started here, and end with this process.
  NodeStarter(int socket, MakeNodes make, std::filesystem::path run, double grace_seconds);
  /// Ends the nodes.
  ~NodeStarter();
  NodeStarter(const NodeStarter&) = delete;
  NodeStarter& operator=(const NodeStarter&) = delete;

  /// Nodes that a dead head at the same port had started stay. Throws std::runtime_error.
  void start(int port);

private:
  std::string ask(const std::string& command, int seconds); // returns the problem, or ""

  int socket_;
  MakeNodes make_;
  std::filesystem::path run_;
  int stop_seconds_;
  int asked_ = 0;
  std::unique_ptr<StartedNodes> here_;
};

} // namespace troupe::experiments::commands
