#pragma once

#include <chrono>
#include <map>
#include <string>

namespace troupe::actors {

/// Sums the time of an actor by stage. One thread.
class Stopwatch {
public:
  /// The time since the last call (or the construction) belongs to `stage`.
  void lap(const std::string& stage) {
    const auto now = std::chrono::steady_clock::now();
    seconds_[stage] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }
  const std::map<std::string, double>& seconds() const { return seconds_; }

private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::map<std::string, double> seconds_;
};

} // namespace troupe::actors
