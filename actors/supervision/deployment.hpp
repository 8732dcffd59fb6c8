#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/placement/placer.hpp"
#include "actors/remoting/cluster_keys.hpp"

namespace troupe::actors {

/// What a process of this host needs to run one actor.
struct ProcessOrder {
  std::string role;
  int index = 0;
  std::uint64_t epoch = 0;       // identifies the head's life
  std::uint64_t incarnation = 0; // number of earlier starts of the actor
  std::string head_host = "127.0.0.1";
  std::uint16_t head_port = 0;
  std::string address = "127.0.0.1"; // at which the process listens
  std::filesystem::path config;      // the run's; empty: the configuration of the starting process
  CoreSet cores = {};                // to pin the process to; empty: any
  std::vector<int> gpus = {};        // that it may see; empty: all
};

/// The nodes on which a run's processes are placed.
struct DeploymentNodes {
  Placer placer;             // has the expected nodes and the needs of all roles
  double join_seconds = 120; // to wait for the nodes; then the run starts without missing ones
  bool pin = true;           // processes run only on their assigned cores
  /// Whether a run that fails, or that this process is asked to stop, continues under another head.
  /// Nodes then end their processes and wait for it. Otherwise the run is over for them, too.
  bool head_comes_back = false;
};

/// How a run is distributed. Without start_process and nodes all actors are in this process.
struct Deployment {
  /// Starts a process of this host, which must call run_actor(), and returns its id.
  std::function<int(const ProcessOrder&)> start_process = {};
  std::optional<DeploymentNodes> nodes = {}; // used instead of start_process
  std::string listen = "127.0.0.1";          // address for processes and nodes to connect to
  std::uint16_t head_port = 0;               // 0: a free port
  int head_restarts = 0; // restarts of this run's head by its parent; shown in the status
  std::shared_ptr<const ClusterKeys> keys = nullptr; // required off the loopback interface
  bool trusted_network = false; // strangers cannot reach it, so gradients need no encryption
  std::function<void(std::uint16_t port)> listening = {}; // called when nodes may be started
  /// Whether processes or nodes outlive this process when it is killed. If so, the head writes a
  /// record for its successor (supervision/head_record.hpp).
  bool outlives_head = false;
  /// For a successor: returns the checkpoint from which the run continues if there is nothing to
  /// take over, or an empty path if there is none. Until then run() may use the checkpoint that it
  /// was given unchecked. If the function is empty, nothing is taken over.
  std::function<std::filesystem::path()> without_takeover = {};
  /// Whether operators may connect even if all actors are in this process. If actors are elsewhere,
  /// they always may.
  bool operated = false;
};

inline bool has_processes(const Deployment& deployment) {
  return deployment.nodes || deployment.start_process;
}

/// Whether operators may connect.
inline bool is_operated(const Deployment& deployment) {
  return has_processes(deployment) || deployment.operated;
}

} // namespace troupe::actors
