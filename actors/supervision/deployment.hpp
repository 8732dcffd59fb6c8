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

/// A process of this host for one role of a run.
struct ProcessOrder {
  std::string role;
  int index = 0;
  std::uint64_t epoch = 0;       // of the head's life
  std::uint64_t incarnation = 0; // how often the actor was started before
  std::string head_host = "127.0.0.1";
  std::uint16_t head_port = 0;
  std::string address = "127.0.0.1"; // what it listens at
  std::filesystem::path config;      // the run's; empty: the one of who starts it
  CoreSet cores = {};                // to be pinned to; empty: any
  std::vector<int> gpus = {};        // that it sees; empty: all
};

/// Nodes on which a run's processes are.
struct DeploymentNodes {
  Placer placer;             // with the expected nodes and the needs of all roles
  double join_seconds = 120; // until they have joined; then the run begins with the joined ones
  bool pin = true;           // processes run only on their assigned cores
  /// Asked by any thread as the run ends; true: nodes end what runs on them and wait for the next
  /// head. Empty: the run is over for them, too.
  std::function<bool()> head_comes_back = {};
};

/// How a run is spread: without start_process and nodes everything is in this process.
struct Deployment {
  /// Starts a process of this host, which calls run_actor(), and returns its id.
  std::function<int(const ProcessOrder&)> start_process = {};
  std::optional<DeploymentNodes> nodes = {};         // in place of start_process
  std::string listen = "127.0.0.1";                  // where the processes and nodes meet
  std::uint16_t head_port = 0;                       // 0: a free one
  int head_restarts = 0;                             // of this run by its watch, for the status
  std::shared_ptr<const ClusterKeys> keys = nullptr; // needed off the loopback interface
  bool trusted_network = false; // no stranger reaches it: gradients need no encryption
  std::function<void(std::uint16_t port)> listening = {}; // nodes may be started
  /// What runs on its processes or nodes outlives this process when it is killed: the head writes a
  /// record for its successor (supervision/head_record.hpp).
  bool outlives_head = false;
  /// Of a successor: if there is nothing to take over, the checkpoint that the run continues from;
  /// an empty path if there is none, either. Until then run() may use the one that it was given
  /// unchecked. An empty function: nothing is taken over.
  std::function<std::filesystem::path()> without_takeover = {};
  /// Operators may connect, also where all actors are in this process; else only where they are
  /// not.
  bool operated = false;
};

inline bool has_processes(const Deployment& deployment) {
  return deployment.nodes || deployment.start_process;
}

/// Operators may connect.
inline bool is_operated(const Deployment& deployment) {
  return has_processes(deployment) || deployment.operated;
}

} // namespace troupe::actors
