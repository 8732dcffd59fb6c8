#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace troupe::replay {

/// How long a request waits for the rate limiter, and on whose behalf. The caller owns the clock.
struct WaitOptions {
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::string who = {}; // for messages: "learner 0"
  /// Called once with the reason, instead of the request's own callback.
  std::function<void(const std::string& why)> refused = {};
};

} // namespace troupe::replay
