#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::experiments::launchers {

/// A node to start.
struct NodeStart {
  std::string name = {};                   // passed as TROUPE_NODE_NAME
  std::string host = {};                   // the address that the launcher uses for the host
  std::vector<std::string> arguments = {}; // follow the program: "node", "--head", "10.0.0.1:4242"
  /// Resources to reserve, for launchers that reserve them; 0: none.
  int cores = 0, gpus = 0;
};

/// Settings shared by all nodes of a launcher.
struct LaunchSettings {
  std::filesystem::path program = {}; // on this host
  /// Files and folders whose paths occur as arguments or as values in the environment. If a host
  /// lacks one, or has a different file at that path, the launcher copies it there if it can and
  /// passes the path of the copy instead. Only the owner can read the copied files. A folder's
  /// ca.key is never copied.
  std::vector<std::filesystem::path> files = {};
  /// Folders that the program reads, each with the path relative to the program's folder where the
  /// program looks for it ("../suite") if the original path does not exist. A host that lacks one
  /// gets a copy of it and of the program.
  std::map<std::filesystem::path, std::string> data = {};
  /// Must not contain secrets, because other users may be able to read it.
  std::map<std::string, std::string> environment = {};
  /// Called with each line of output of a node or its launch command, on the launcher's thread, one
  /// call at a time. Must not block or call the launcher.
  std::function<void(const std::string& node, std::string_view line)> output = {};
};

/// A node that has ended or could not be started.
struct NodeEnd {
  std::string node = {};
  bool good = false;    // whether it ended with exit code 0
  std::string how = {}; // one line: the node, its host, the command and the outcome
  std::vector<std::string> last_lines = {}; // last output of the node or its launch command
};

/// Starts and stops nodes on hosts. The nodes join the head by themselves. Use from one thread at a
/// time.
class Launcher {
public:
  virtual ~Launcher() = default; // kills the nodes that are still running

  /// Returns when each node runs or has failed, within the launcher's time limits; poll() reports
  /// failures. A node that has ended may be started again. Once `ended` is requested, returns
  /// without waiting for the remaining nodes; only stop() may follow. For wrong settings or a
  /// program missing on this host, throws std::invalid_argument with the key, its value, the rule
  /// and a remedy.
  void start(const std::vector<NodeStart>& nodes, const std::stop_token& ended = {}) {
    start_nodes(nodes, ended);
  }

  /// Returns the nodes that have ended or failed to start since the last call.
  virtual std::vector<NodeEnd> poll() = 0;

  /// Asks all nodes to stop with SIGTERM, kills the rest after `grace`, and removes the copies on
  /// their hosts. poll() reports failures.
  virtual void stop(std::chrono::milliseconds grace) = 0;

private:
  virtual void start_nodes(const std::vector<NodeStart>& nodes, const std::stop_token& ended) = 0;
};

/// For nodes that are started by other means, such as pods, job scripts or by hand.
class NoLauncher : public Launcher {
public:
  std::vector<NodeEnd> poll() override { return {}; }
  void stop(std::chrono::milliseconds) override {}

private:
  void start_nodes(const std::vector<NodeStart>&, const std::stop_token&) override {}
};

} // namespace troupe::experiments::launchers
