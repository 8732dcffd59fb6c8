#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "experiments/launchers/child_processes.hpp"
#include "experiments/launchers/launcher.hpp"

namespace troupe::experiments::launchers {

struct SshSettings {
  std::string ssh = "ssh";
  std::string user = {}; // "": from ssh's configuration
  int port = 22;
  std::filesystem::path identity_file = {}; // "": from the agent or ssh's configuration
  std::filesystem::path known_hosts = {};   // "": ssh's default
  std::filesystem::path config = {};        // for `ssh -F`
  std::string program = {};                 // path on the hosts; "": copied where missing
  std::string folder = "/tmp";              // parent of the private folders on the hosts
  std::chrono::milliseconds connect_limit{15'000};
  std::chrono::milliseconds start_limit{120'000};
  std::chrono::milliseconds grace{60'000}; // for a node whose head or connection is gone
  std::chrono::milliseconds lost{10'000};  // without a heartbeat: the connection is gone
};

class HostSession;

/// Runs nodes on hosts with an OpenSSH server, through the system's `ssh`. One connection to each
/// host carries the files that are missing there, the node's output and heartbeats. A shell on the
/// host watches the node: if there is no heartbeat for `lost`, because this process or the
/// connection is gone, the shell asks the node to stop, kills what is left after `grace`, and
/// removes everything that was copied. Keys and other files are sent through the connection, never
/// as arguments. The hosts need bash and coreutils.
class SshLauncher : public Launcher {
public:
  SshLauncher(LaunchSettings settings, SshSettings ssh);
  ~SshLauncher() override;
  std::vector<NodeEnd> poll() override;
  void stop(std::chrono::milliseconds grace) override;

private:
  void start_nodes(const std::vector<NodeStart>& nodes, const std::stop_token& ended) override;
  void beat(const std::stop_token& ended);
  void clean_up(std::vector<std::shared_ptr<HostSession>> sessions);

  LaunchSettings settings_;
  SshSettings ssh_;
  ChildProcesses children_;
  std::mutex mutex_;                                   // guards sessions_
  std::vector<std::shared_ptr<HostSession>> sessions_; // sessions of running nodes
  std::vector<std::shared_ptr<HostSession>> broken_;   // may have left something
  std::vector<NodeEnd> ended_;
  std::jthread beats_;
};

} // namespace troupe::experiments::launchers
