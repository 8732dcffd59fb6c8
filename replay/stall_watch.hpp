#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace troupe::replay {

/// Says when nothing has moved for too long while somebody waits. The clock is the caller's.
class StallWatch {
public:
  using Time = std::chrono::steady_clock::time_point;

  explicit StallWatch(std::chrono::milliseconds after) : after_(after) {}

  /// True after so long without progress, and again after as long. `progress` is any number that
  /// changes when somebody moves.
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

  /// When to look again at the latest.
  Time due() const { return since_ ? *since_ + after_ : Time::max(); }

private:
  std::chrono::milliseconds after_;
  std::int64_t progress_ = 0;
  std::optional<Time> since_; // of the last progress or report; empty while nobody waits
};

} // namespace troupe::replay
