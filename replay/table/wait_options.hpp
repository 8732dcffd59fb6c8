#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace troupe::replay {

using Deadline = std::chrono::steady_clock::time_point;

/// How long a request waits for the rate limiter, and who makes it. The caller owns the clock.
struct WaitOptions {
  Deadline deadline = Deadline::max();
  std::string who = {}; // for messages: "learner 0"
  /// Called once with the reason, instead of the request's own callback.
  std::function<void(const std::string& why)> refused = {};
};

} // namespace troupe::replay
