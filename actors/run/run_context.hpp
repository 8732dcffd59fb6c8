#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include "actors/protocol/head_record.pb.h"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages.pb.h"
#include "actors/run/run.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::actors {

/// The arguments of run(), shared by the parts of the head. Outlives these parts.
struct RunContext {
  caf::actor_system& system;
  const RunConfig& config;
  const replay::TransitionSpec& transitions;
  const std::filesystem::path& folder;
  const std::filesystem::path& resume_from;
  const Deployment& deployment;
  const RunCallbacks& callbacks;
  const std::atomic<bool>& stop;
  std::atomic<bool>& nodes_wait; // for another head when this one ends; false: the run is over
  wire::RunState before = {};    // counters of resume_from
  /// The record of the head whose processes this head takes over; `before` then comes from it.
  std::shared_ptr<const wire::HeadRecord> succeeds = nullptr;

  void log(const std::string& level, const std::string& text) const {
    if (callbacks.log)
      callbacks.log(level, text);
  }
};

} // namespace troupe::actors
