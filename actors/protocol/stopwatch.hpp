#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "collectives/timeline.hpp"

namespace troupe::actors {

/// Adds up an actor's time by stage. One thread.
class Stopwatch {
public:
  Stopwatch() = default;
  /// Also records each stage as a span of `timeline`.
  explicit Stopwatch(std::shared_ptr<collectives::Timeline> timeline)
      : timeline_(std::move(timeline)) {}

  /// Adds the time since the last call (or the construction) to `stage`, a string literal.
  void lap(const char* stage) {
    const auto now = std::chrono::steady_clock::now();
    if (timeline_ && timeline_->recording())
      timeline_->add(stage, -1, last_, now);
    seconds_[stage] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }
  const std::map<std::string, double>& seconds() const { return seconds_; }

private:
  std::shared_ptr<collectives::Timeline> timeline_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::map<std::string, double> seconds_;
};

} // namespace troupe::actors
