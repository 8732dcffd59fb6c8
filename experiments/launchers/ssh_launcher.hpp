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
  std::string user = {}; // "": as ssh's configuration says
  int port = 22;
  std::filesystem::path identity_file = {}; // "": the agent's, or ssh's configuration
  std::filesystem::path known_hosts = {};   // "": ssh's own
  std::filesystem::path config = {};        // for `ssh -F`
  std::string program = {};                 // on the hosts; "": copied to where it is missing
  std::string folder = "/tmp";              // on the hosts
  std::chrono::milliseconds connect_limit{15'000};
  std::chrono::milliseconds start_limit{120'000};
  std::chrono::milliseconds grace{60'000}; // for a node whose head or connection is gone
  std::chrono::milliseconds lost{10'000};  // without a sign of this launcher, after which it is
};

class HostSession;
class HostFiles;

/// Nodes on hosts that an OpenSSH server runs on, by the system's `ssh`: one connection to each
/// host carries what is missing there, the node's output, and a sign of life. On the host a shell
/// watches the node: when this process, or the connection, is gone for `lost`, it tells the node to
/// go, kills what is left after `grace`, and removes all that was copied. Keys and other files go
/// through the connection, never through arguments. Needs bash and coreutils on the hosts.
class SshLauncher : public Launcher {
public:
  SshLauncher(LaunchSettings settings, SshSettings ssh);
  ~SshLauncher() override;
  void start(const std::vector<NodeStart>& nodes) override;
  std::vector<NodeEnd> poll() override;
  void stop(std::chrono::milliseconds grace) override;

private:
  void beat(const std::stop_token& ended);
  void clean_up(std::vector<std::shared_ptr<HostSession>> sessions);

  LaunchSettings settings_;
  SshSettings ssh_;
  ChildProcesses children_;
  std::unique_ptr<HostFiles> files_;                   // made by the first start()
  std::mutex mutex_;                                   // of sessions_
  std::vector<std::shared_ptr<HostSession>> sessions_; // that run
  std::vector<std::shared_ptr<HostSession>> broken_;   // that may have left something on the host
  std::vector<NodeEnd> ended_;
  std::jthread beats_;
};

} // namespace troupe::experiments::launchers
