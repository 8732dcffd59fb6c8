#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/head_record.pb.h"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages.pb.h"
#include "actors/protocol/run_config.hpp"
#include "actors/supervision/deployment.hpp"
#include "actors/supervision/node_table.hpp"
#include "actors/supervision/process_table.hpp"
#include "actors/supervision/roles.hpp"

namespace troupe::actors {

struct SupervisorOptions {
  RunConfig config;
  replay::TransitionSpec transitions;
  caf::actor listener;
  Deployment deployment;
  std::string config_file = {}; // of the run, for nodes
  std::uint16_t head_port = 0;  // of this supervisor, for processes; 0: all actors are in this one
  std::uint64_t epoch = 0;      // of this head's life, and of those it succeeds
  /// What a dead head of this epoch has left: its processes may come to this one.
  std::shared_ptr<const wire::HeadRecord> succeeds = nullptr;
  std::optional<ControlActor> control = {}; // serves the run's operators
};

struct SupervisorState {
  static const char* name;
  /// The handles behind an entry of `processes` and of `nodes`.
  struct Handles {
    caf::actor actor;
    caf::actor process; // the process's own; none: in this process
    std::optional<caf::typed_response_promise<done_atom>> on_left = {}; // asked it to leave
  };
  struct NodeHandles {
    NodeActor actor;
    caf::actor agent; // the node's own; none: this process
  };
  SupervisorOptions options;
  ProcessTable processes;
  std::map<ProcessKey, Handles> handles;
  std::optional<NodeTable> nodes;                  // of a run on nodes
  std::map<std::string, NodeHandles> node_handles; // by name; without `nodes` one, "", of this host
  std::vector<ReplayActor> shards;
  std::vector<std::string> shard_endpoints;
  std::string parameter_endpoint;
  std::vector<std::string> server_endpoints; // of parameter servers; a restarted one keeps its own
  std::shared_ptr<env::wire::Context> context; // of parameter servers in this process
  std::optional<ParameterActor> parameters;    // in this process
  std::shared_ptr<learner::Strategy> strategy; // of the learners in this process
  std::optional<RendezvousActor> rendezvous;   // of the learner processes that started together
  bool stopping = false;
  std::size_t nodes_left = 0; // that have not stopped yet
  std::int64_t stop_by = 0;   // tick at which it stops without the rest
  std::vector<caf::typed_response_promise<done_atom>> stoppers;
};

/// Supervises one for one. An actor that died may be restarted config.actors.restarts times within
/// config.supervision.restart_minutes, after a growing pause; the listener decides when. In one
/// process this holds for environment actors, the evaluator and parameter servers; with a process
/// each for all actors, except a shard or a learner that ended with an exception (Fault::failed).
/// Every other death ends the run. Processes of the head before (SupervisorOptions::succeeds) that
/// are silent for config.supervision.lost_seconds count as dead. An actor that was asked to leave
/// (leave_atom) has not died. No process outlives stop_atom.
SupervisorActor::behavior_type
supervisor_actor(SupervisorActor::stateful_pointer<SupervisorState> self,
                 SupervisorOptions options);

} // namespace troupe::actors
