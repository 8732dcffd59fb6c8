#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace troupe::replay {

using Deadline = std::chrono::steady_clock::time_point;

/// How long a request waits for the rate limiter, and who makes it. The caller owns the clock.
struct WaitOptions {
  Deadline deadline = Deadline::max();
  std::string who = {}; // for messages: "learner 0"
  /// Called once with the reason, instead of the request's own callback.
  std::function<void(const std::string& why)> refused = {};
  /// Set to true, on any thread, to have the next expire() refuse the request. May be null.
  std::shared_ptr<const std::atomic<bool>> cancelled = {};

  bool is_cancelled() const { return cancelled && *cancelled; }
};

} // namespace troupe::replay
