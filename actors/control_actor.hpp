#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "actors/messages.hpp"
#include "actors/messages.pb.h"
#include "actors/run.hpp"

namespace troupe::actors {

struct ControlOptions {
  RunConfig config;
  caf::actor head;
  std::uint64_t epoch = 0; // of the head's life
  std::string folder = {}; // of the run
};

struct ControlState {
  static const char* name;
  ControlOptions options;
  UpdatePtr update;      // the newest
  wire::HeadReport head; // the newest
  std::uint64_t requests = 0;
  std::map<std::uint64_t, caf::typed_response_promise<Encoded>> asked; // of the head
};

/// Why a role's number cannot be changed to `count` while the run goes on, and what to do instead;
/// empty where it can. Pure.
std::string why_not_scaled(const RunConfig& config, const std::string& role, std::int32_t count);

/// The processes that a restart is about, in the order of their roles. Throws std::invalid_argument
/// that names what there is when there is none of them. Pure.
wire::RestartOrder restart_order(const RunConfig& config,
                                 const wire::ControlRequest::Restart& wanted,
                                 const wire::SupervisorReport& there);

/// Requests of whoever operates the run. Status is answered at once, also while the head waits for
/// somebody; the rest when the head has done it. What is asked is checked here.
ControlActor::behavior_type control_actor(ControlActor::stateful_pointer<ControlState> self,
                                          ControlOptions options);

} // namespace troupe::actors
