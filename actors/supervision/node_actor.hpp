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
  std::string head_host = "127.0.0.1"; // as this node reaches it
};

struct NodeState {
  static const char* name;
  struct Process {
    int id = 0;
    wire::Life life;
    std::string cores = {}; // as it was started
    std::vector<int> gpus = {};
    /// Of one that a dead head had started, and that is no child of this process: a pidfd.
    std::shared_ptr<const env::wire::Descriptor> adopted = nullptr;
  };
  NodeOptions options;
  std::map<std::pair<Role, std::int32_t>, Process> processes;
  std::vector<int> leaving; // killed children, not collected yet
  int patience = -1;        // ticks until all are killed; below 0: not stopping
  std::vector<caf::typed_response_promise<done_atom>> stoppers;
};

/// The processes of one host. None outlives it: they die with the process that started them.
NodeActor::behavior_type node_actor(NodeActor::stateful_pointer<NodeState> self,
                                    NodeOptions options);

} // namespace troupe::actors
