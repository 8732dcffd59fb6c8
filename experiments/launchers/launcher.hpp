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
  std::string name = {};                   // told to it as TROUPE_NODE_NAME
  std::string host = {};                   // that the launcher reaches its host at
  std::vector<std::string> arguments = {}; // after the program: "node", "--head", "10.0.0.1:4242"
};

/// What all nodes of a launcher have in common.
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
  /// Each line that a node, or what starts it, says. One call at a time, on a thread of the
  /// launcher's, which it holds up; must not call the launcher.
  std::function<void(const std::string& node, std::string_view line)> output = {};
};

/// A node that could not be started, or has ended.
struct NodeEnd {
  std::string node = {};
  bool good = false;    // it ended with exit code 0
  std::string how = {}; // one line: the node, its host, the command, what became of it
  std::vector<std::string> last_lines = {}; // that it, or what starts it, said
};

/// Starts nodes on hosts and ends them. One thread at a time. Who starts nodes need not be told
/// that they have joined: that is between them and the head.
class Launcher {
public:
  virtual ~Launcher() = default; // ends at once what still runs

  /// Returns when each of them runs or has failed, within the launcher's limits; what failed is
  /// told by poll(). A node that has ended may be started again. Throws std::invalid_argument for
  /// what is wrong with the settings or this host: key, value, rule, way out.
  virtual void start(const std::vector<NodeStart>& nodes) = 0;

  /// Those that have ended since the last call, or could not be started.
  virtual std::vector<NodeEnd> poll() = 0;

  /// Tells all nodes to go (SIGTERM), kills after `grace` those that still run, and removes what
  /// was put on their hosts. What cannot be ended or removed is told by poll().
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

/// For nodes that somebody else starts: pods, job scripts, people.
class NoLauncher : public Launcher {
public:
  void start(const std::vector<NodeStart>&) override {}
  std::vector<NodeEnd> poll() override { return {}; }
  void stop(std::chrono::milliseconds) override {}
};

} // namespace troupe::experiments::launchers
