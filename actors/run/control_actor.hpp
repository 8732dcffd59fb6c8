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
  std::uint64_t epoch = 0; // of the head's life
  std::string folder = {}; // of the run
  bool threads = false;    // its actors are threads of one process
};

struct ControlState {
  static const char* name;
  ControlOptions options;
  UpdatePtr update;      // the newest
  wire::HeadReport head; // the newest
  std::uint64_t requests = 0;
  std::map<std::uint64_t, caf::typed_response_promise<ProtoBytes>> asked; // of the head
};

/// Why a role cannot be scaled to `count` during the run, and the remedy; empty if it can. Pure.
std::string why_not_scaled(const RunConfig& config, const std::string& role, std::int32_t count);

/// Why the rate limiter of a run cannot be changed so, and the remedy; empty if it can. Pure.
std::string why_not_limited(const RunConfig& config, const wire::ControlRequest::Limit& wanted);

/// The configuration with another rate limiter.
RunConfig limited(const RunConfig& config, const wire::ControlRequest::Limit& wanted);

/// The processes to restart, in the order of their roles. Throws std::invalid_argument listing the
/// existing ones if there are none. Pure.
wire::RestartOrder restart_order(const RunConfig& config,
                                 const wire::ControlRequest::Restart& wanted,
                                 const wire::SupervisorReport& there);

/// Serves the run's operators: checks each request, answers status at once, even while the head
/// waits, and others when the head has done them.
ControlActor::behavior_type control_actor(ControlActor::stateful_pointer<ControlState> self,
                                          ControlOptions options);

} // namespace troupe::actors
