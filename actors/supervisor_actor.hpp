#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages.hpp"
#include "actors/messages.pb.h"
#include "actors/roles.hpp"
#include "actors/run.hpp"

namespace troupe::actors {

struct SupervisorOptions {
  RunConfig config;
  replay::TransitionSpec transitions;
  caf::actor listener;
  Deployment deployment;
  std::string config_file = {}; // the run's, for nodes
  std::uint16_t head_port = 0;  // where processes find us; 0: everything in this process
  std::uint64_t epoch = 0;      // of this head's life
  std::optional<ControlActor> control = {}; // for who operates the run
};

struct SupervisorState {
  static const char* name;
  enum class Phase : std::uint8_t { absent, starting, up, leaving };
  struct Child {
    caf::actor who;
    caf::actor process; // the process's own handle; none: in this process
    Phase phase = Phase::absent;
    std::uint64_t incarnation = 0;
    std::int64_t steps_before = 0;
    std::int64_t heard = 0;          // tick of its last sign of life
    std::deque<std::int64_t> deaths; // ticks of those that still count
    std::int64_t not_before = 0;     // tick of the next start
    bool waiting = false;            // for that, or for a node
    std::string node;                // that it is on
    std::int64_t since = 0;          // tick at which its phase began
    int id = 0;                      // of its process, on its host
    std::string problem;             // why it has no place
    std::optional<caf::typed_response_promise<done_atom>> on_left = {}; // who had it leave
    std::int64_t leave_by = 0; // tick at which it is killed
  };
  SupervisorOptions options;
  std::map<std::pair<Role, std::int32_t>, Child> children;
  struct Node {
    NodeActor actor;
    caf::actor agent; // the node's own handle; none: this process
    std::uint64_t life = 0;
    std::int64_t heard = 0; // tick of its last sign of life
    std::string address = "127.0.0.1";
  };
  std::map<std::string, Node> nodes; // by name; without a placer one, "", of this process
  std::optional<Placer> placer;
  std::map<std::string, NodeResources> resources; // of nodes that were there or are expected
  bool placed = false;                            // all that were expected came, or none more will
  std::vector<ReplayActor> shards;
  std::vector<std::string> shard_endpoints;
  std::string parameter_endpoint;
  std::vector<std::string> server_endpoints;   // of the parameter servers; stay when one dies
  std::shared_ptr<env::wire::Context> context; // of those in this process
  std::optional<ParameterActor> parameters;    // in this process
  std::shared_ptr<learner::Strategy> strategy; // of the learners in this process
  std::optional<RendezvousActor> rendezvous;   // of this life of the learner processes
  std::int64_t now = 0;                        // ticks
  bool stopping = false;
  std::size_t nodes_left = 0; // that have not stopped yet
  int patience = 0;           // ticks until it stops without those that are left
  std::vector<caf::typed_response_promise<done_atom>> stoppers;
};

/// One-for-one supervision. What died may be restarted config.actors.restarts times within
/// config.supervision.restart_minutes, each time a little later; who listens decides when. In this
/// process that holds for environment actors, the evaluator and parameter servers; in processes of
/// their own for all, but for a shard or a learner that ended with an exception (Fault::failed).
/// Everything else that dies ends the run. Who leaves because it was told to (leave_atom) has not
/// died. No process outlives stop_atom.
SupervisorActor::behavior_type
supervisor_actor(SupervisorActor::stateful_pointer<SupervisorState> self,
                 SupervisorOptions options);

} // namespace troupe::actors
