#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages.pb.h"
#include "actors/protocol/run_config.hpp"

namespace troupe::actors {

struct ControlOptions {
  RunConfig config;
  caf::actor head;
  std::uint64_t epoch = 0; // identifies the head's life
  std::string folder = {}; // of the run
  bool threads = false;    // all actors are threads of one process
};

struct ControlState {
  static const char* name;
  ControlOptions options;
  UpdatePtr update;      // the newest
  wire::HeadReport head; // the newest
  std::uint64_t requests = 0;
  std::map<std::uint64_t, caf::typed_response_promise<ProtoBytes>> asked; // pending at the head
};

/// Returns why a role cannot be scaled to `count` during the run, and the remedy; empty if it can.
/// Pure function.
std::string why_not_scaled(const RunConfig& config, const std::string& role, std::int32_t count);

/// Returns why the run's rate limiter cannot be changed to `wanted`, and the remedy; empty if it
/// can. Pure function.
std::string why_not_limited(const RunConfig& config, const wire::ControlRequest::Limit& wanted);

/// Returns the configuration with another rate limiter.
RunConfig limited(const RunConfig& config, const wire::ControlRequest::Limit& wanted);

/// Returns the processes to restart, in the order of their roles. Throws std::invalid_argument
/// listing the existing processes if none match. Pure function.
wire::RestartOrder restart_order(const RunConfig& config,
                                 const wire::ControlRequest::Restart& wanted,
                                 const wire::SupervisorReport& there);

/// Serves the run's operators and checks each request. Answers status requests at once, even while
/// the head waits, and other requests when the head has carried them out.
ControlActor::behavior_type control_actor(ControlActor::stateful_pointer<ControlState> self,
                                          ControlOptions options);

} // namespace troupe::actors
