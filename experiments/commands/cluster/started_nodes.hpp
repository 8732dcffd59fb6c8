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

/// Keeps the nodes of a launch running. It restarts a node that ends or could not be started, as
/// NodeRestarts decides, and writes the nodes' output to a file of the run. The destructor stops
/// the nodes.
class StartedNodes {
public:
  StartedNodes(Cluster cluster, LauncherKind kind, const std::filesystem::path& run);
  ~StartedNodes();
  StartedNodes(const StartedNodes&) = delete;
  StartedNodes& operator=(const StartedNodes&) = delete;

  /// Starts the nodes; call it once. `port` is the head's port, for a cluster file that does not
  /// name it.
  void start(int port);

private:
  void log(const std::string& node, const std::string& line);
  void watch(const std::stop_token& ended);

  Cluster cluster_;
  LauncherKind kind_;
  std::mutex mutex_; // guards log_
  RotatedFile log_;
  std::unique_ptr<launchers::Launcher> launcher_;
  std::vector<launchers::NodeStart> starts_;
  std::mutex sleep_;
  std::condition_variable_any wake_;
  std::jthread watcher_;
};

using MakeNodes = std::function<std::unique_ptr<StartedNodes>(const std::filesystem::path& run)>;

/// The body of the process that starts the nodes for a watched head (HeadLife::starter), so that
/// they outlive that head. Executes the requests of the NodeStarter at the other end of `socket`.
void serve_node_starts(int socket, const MakeNodes& make);

/// The head's side of the connection.
class NodeStarter {
public:
  /// With `socket` -1, this process starts the nodes itself, and they end with it.
  NodeStarter(int socket, MakeNodes make, std::filesystem::path run, double grace_seconds);
  /// Stops the nodes.
  ~NodeStarter();
  NodeStarter(const NodeStarter&) = delete;
  NodeStarter& operator=(const NodeStarter&) = delete;

  /// Starts the nodes. Nodes that a dead head started for the same port are kept. Throws
  /// std::runtime_error.
  void start(int port);

private:
  std::string ask(const std::string& command, int seconds); // returns the problem, or "" on success

  int socket_;
  MakeNodes make_;
  std::filesystem::path run_;
  int stop_seconds_;
  int asked_ = 0;
  std::unique_ptr<StartedNodes> here_;
};

} // namespace troupe::experiments::commands
