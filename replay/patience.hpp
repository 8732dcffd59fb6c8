#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace troupe::replay {

/// How long somebody waits for the limiter, and who it is. The clock is the caller's.
struct Patience {
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::string who = {}; // for people: "learner 0"
  /// Called instead of the callback beside it, once, with why.
  std::function<void(const std::string& why)> refused = {};
};

} // namespace troupe::replay
