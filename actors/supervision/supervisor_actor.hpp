#pragma once

#include <atomic>
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
  std::string config_file = {}; // of the run, sent to nodes
  std::uint16_t head_port = 0;  // of this supervisor; 0: all actors are in this process
  std::uint64_t epoch = 0;      // of this head's life and of the heads that it succeeds
  /// The record of a dead head of this epoch, whose processes may join this one.
  std::shared_ptr<const wire::HeadRecord> succeeds = nullptr;
  std::optional<ControlActor> control = {}; // serves the run's operators
  /// Read as the supervisor stops: whether nodes then wait for another head. Null: the run is over
  /// for them, too.
  const std::atomic<bool>* nodes_wait = nullptr;
};

struct SupervisorState {
  static const char* name;
  /// The handles that belong to entries of `processes` and of `nodes`.
  struct Handles {
    caf::actor actor;
    caf::actor process; // the process's own; null: in this process
    std::optional<caf::typed_response_promise<done_atom>> on_left = {}; // the request to leave
  };
  struct NodeHandles {
    NodeActor actor;
    caf::actor agent; // the node's own; null: this process
  };
  SupervisorOptions options;
  ProcessTable processes;
  std::map<ActorKey, Handles> handles;
  std::optional<NodeTable> nodes;                  // only if the run uses nodes
  std::map<std::string, NodeHandles> node_handles; // by name; without `nodes` only this host's, ""
  std::vector<ReplayActor> shards;
  std::vector<std::string> shard_endpoints;
  std::string parameter_endpoint;
  std::vector<std::string> server_endpoints;   // a restarted parameter server keeps its endpoint
  std::shared_ptr<env::wire::Context> context; // for parameter servers in this process
  std::optional<ParameterActor> parameters;    // in this process
  std::shared_ptr<learner::Strategy> strategy; // for the learners in this process
  std::optional<RendezvousActor> rendezvous;   // for the learner processes that started together
  bool stopping = false;
  std::size_t nodes_left = 0; // nodes that have not stopped yet
  std::int64_t stop_by = 0;   // tick at which it stops without waiting any longer
  std::vector<caf::typed_response_promise<done_atom>> stoppers;
};

/// A one-for-one supervisor. An actor that died may be restarted config.actors.restarts times
/// within config.supervision.restart_minutes, after a growing delay; the listener decides when. In
/// a run in one process this applies to environment actors, the evaluator and parameter servers.
/// With separate processes it applies to all actors, except a shard or learner that ended with an
/// exception (Fault::failed). Every other death ends the run. Processes of the previous head
/// (SupervisorOptions::succeeds) that are silent for config.supervision.lost_seconds count as dead.
/// An actor that was asked to leave (leave_atom) does not count as dead. No process outlives
/// stop_atom.
SupervisorActor::behavior_type
supervisor_actor(SupervisorActor::stateful_pointer<SupervisorState> self,
                 SupervisorOptions options);

} // namespace troupe::actors
