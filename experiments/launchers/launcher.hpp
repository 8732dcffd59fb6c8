#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::experiments::launchers {

/// One node to start.
struct NodeStart {
  std::string name = {};                   // passed as TROUPE_NODE_NAME
  std::string host = {};                   // host address for the launcher
  std::vector<std::string> arguments = {}; // after the program: "node", "--head", "10.0.0.1:4242"
  // What it needs of its host, for launchers that reserve it; 0: not counted
  int cores = 0, gpus = 0;
};

/// Settings of all nodes of a launcher.
struct LaunchSettings {
  std::filesystem::path program = {}; // on this host
  /// Files and folders whose paths are arguments, or values of the environment: where a host lacks
  /// one, or has another at that path, it is copied there if the launcher can, and the argument is
  /// the copy's path. Files are read by their owner alone there; a folder's ca.key stays here.
  std::vector<std::filesystem::path> files = {};
  /// Folders that the program reads, and the names that it looks for them by beside its own folder
  /// ("../suite") where their paths are not there: a host that lacks one gets it and the program.
  std::map<std::filesystem::path, std::string> data = {};
  std::map<std::string, std::string> environment = {}; // no secrets: others may read it
  /// Gets each output line of a node or its launch command. Called on the launcher's thread, one
  /// call at a time; must not block or call the launcher.
  std::function<void(const std::string& node, std::string_view line)> output = {};
};

/// A node that could not be started, or has ended.
struct NodeEnd {
  std::string node = {};
  bool good = false;    // it ended with exit code 0
  std::string how = {}; // one line: the node, its host, the command, the outcome
  std::vector<std::string> last_lines = {}; // last output of the node or its launch command
};

/// Starts and stops nodes on hosts. One thread at a time. Nodes join the head by themselves.
class Launcher {
public:
  virtual ~Launcher() = default; // ends at once what still runs

  /// Returns when each node runs or has failed, within the launcher's limits; poll() reports
  /// failures. A node that has ended may be started again. Throws std::invalid_argument for wrong
  /// settings or a missing program on this host: key, value, rule, remedy.
  virtual void start(const std::vector<NodeStart>& nodes) = 0;

  /// Nodes that have ended or failed to start since the last call.
  virtual std::vector<NodeEnd> poll() = 0;

  /// Asks all nodes to stop (SIGTERM), kills the rest after `grace`, and removes the copies on
  /// their hosts. poll() reports failures.
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

/// For nodes that are started otherwise: by pods, job scripts, people.
class NoLauncher : public Launcher {
public:
  void start(const std::vector<NodeStart>&) override {}
  std::vector<NodeEnd> poll() override { return {}; }
  void stop(std::chrono::milliseconds) override {}
};

} // namespace troupe::experiments::launchers
