#pragma once

#include <functional>
#include <map>
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
  Placement placement;
  std::uint16_t head_port = 0; // where processes find us; 0: everything in this process
  int collective_port = 0;     // rendezvous of learner processes
};

struct SupervisorState {
  static const char* name;
  enum class Phase : std::uint8_t { absent, starting, up };
  struct Child {
    caf::actor who;
    int process = 0; // id; 0: in this process
    Phase phase = Phase::absent;
    std::uint64_t incarnation = 0;
    std::int64_t steps_before = 0;
    int restarts = 0;
  };
  SupervisorOptions options;
  std::map<std::pair<Role, std::int32_t>, Child> children;
  std::vector<ReplayActor> shards;
  std::vector<std::string> shard_endpoints;
  std::string parameter_endpoint;
  std::vector<std::string> server_endpoints;   // of the parameter servers; stay when one dies
  std::shared_ptr<env::wire::Context> context; // of those in this process
  std::optional<ParameterActor> parameters;    // in this process
  std::shared_ptr<learner::Strategy> strategy; // of the learners in this process
  bool stopping = false;
  std::vector<caf::typed_response_promise<done_atom>> stoppers;
  std::vector<int> leaving; // processes that were told to go
  int patience = 0;         // ticks left before they are killed
};

/// One-for-one supervision. An environment actor, the evaluator or a parameter server that died may
/// be restarted config.actors.restarts times each; who listens decides when and where its
/// environments go on.
/// Everything else that dies ends the run. No process outlives stop_atom.
SupervisorActor::behavior_type
supervisor_actor(SupervisorActor::stateful_pointer<SupervisorState> self,
                 SupervisorOptions options);

} // namespace troupe::actors
