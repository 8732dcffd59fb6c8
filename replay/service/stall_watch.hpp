#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace troupe::replay {

/// Detects that requests have waited for too long without any progress. The caller owns the clock.
class StallWatch {
public:
  using Time = std::chrono::steady_clock::time_point;

  explicit StallWatch(std::chrono::milliseconds after) : after_(after) {}

  /// Returns true once `after` has passed without progress, and again after each such period.
  /// `progress` is any number that changes with progress.
  bool look(bool somebody_waits, std::int64_t progress, Time now) {
    if (!somebody_waits || !since_ || progress != progress_) {
      progress_ = progress;
      since_ = somebody_waits ? std::optional(now) : std::nullopt;
      return false;
    }
    if (now - *since_ < after_)
      return false;
    since_ = now;
    return true;
  }

  /// Returns the time at which look() must be called next at the latest.
  Time due() const { return since_ ? *since_ + after_ : Time::max(); }

private:
  std::chrono::milliseconds after_;
  std::int64_t progress_ = 0;
  std::optional<Time> since_; // time of the last progress or report; empty while no request waits
};

} // namespace troupe::replay
