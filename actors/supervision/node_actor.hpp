#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages.pb.h"
#include "actors/supervision/deployment.hpp"
#include "env/sockets/descriptor.hpp"

namespace troupe::actors {

struct NodeOptions {
  std::function<int(const ProcessOrder&)> start_process; // as in Deployment
  SupervisorActor supervisor;
  std::string head_host = "127.0.0.1"; // as seen from this node
  double lost_seconds = 15;            // for which a process is stopped, after which it is reported
};

struct NodeState {
  static const char* name;
  struct Process {
    int id = 0;
    wire::Life life;
    std::string cores = {}; // with which it was started
    std::vector<int> gpus = {};
    /// A pidfd, set for a process that a dead head had started and that is not our child.
    std::shared_ptr<const env::wire::Descriptor> adopted = nullptr;
    int stopped = 0; // how many looks in a row found it stopped
  };
  NodeOptions options;
  std::map<ActorKey, Process> processes;
  std::vector<int> leaving; // killed children whose exit status is not collected yet
  int patience = -1;        // ticks until all processes are killed; below 0: not stopping
  int ticks = 0;
  std::vector<caf::typed_response_promise<done_atom>> stoppers;
};

/// Manages the processes of one host, and reports ended and frozen ones to the supervisor. None
/// outlives it, because they die with the process that started them.
NodeActor::behavior_type node_actor(NodeActor::stateful_pointer<NodeState> self,
                                    NodeOptions options);

} // namespace troupe::actors
