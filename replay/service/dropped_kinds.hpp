#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace troupe::replay {

/// Decides when dropped messages are logged: the first of each kind at once, later ones with their
/// number once a minute. Used by one thread at a time.
class DroppedKinds {
public:
  using Time = std::chrono::steady_clock::time_point;

  /// Counts a dropped message. If it is to be logged now, returns the number of messages of its
  /// kind that were dropped since they were last logged, otherwise 0.
  std::int64_t note(const std::string& kind, Time now) {
    // Reasons may contain numbers that a client chose, so kinds beyond kMostKinds count as one.
    const bool known = kinds_.contains(kind) || kinds_.size() < kMostKinds;
    const auto [at, added] = kinds_.try_emplace(known ? kind : "");
    Kind& of = at->second;
    ++of.untold;
    if (!added && now - of.told < kPause)
      return 0;
    of.told = now;
    return std::exchange(of.untold, 0);
  }

private:
  static constexpr std::size_t kMostKinds = 64;
  static constexpr std::chrono::seconds kPause{60};
  struct Kind {
    std::int64_t untold = 0;
    Time told{};
  };
  std::map<std::string, Kind> kinds_;
};

} // namespace troupe::replay
