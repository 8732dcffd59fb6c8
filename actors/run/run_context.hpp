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

/// The arguments of run(), shared by the parts of the head. Outlives them all.
struct RunContext {
  caf::actor_system& system;
  const RunConfig& config;
  const replay::TransitionSpec& transitions;
  const std::filesystem::path& folder;
  const std::filesystem::path& resume_from;
  const Deployment& deployment;
  const RunCallbacks& callbacks;
  const std::atomic<bool>& stop;
  std::atomic<bool>& nothing_left; // to take over: set by the head that finds that
  wire::RunState before = {};      // counters in resume_from
  /// Of the head whose processes this one takes over; `before` is its.
  std::shared_ptr<const wire::HeadRecord> succeeds = nullptr;

  void log(const std::string& level, const std::string& text) const {
    if (callbacks.log)
      callbacks.log(level, text);
  }
};

} // namespace troupe::actors
