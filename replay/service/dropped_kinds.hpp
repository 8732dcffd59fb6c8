#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace troupe::replay {

/// Decides what is said of dropped messages: the first of each kind at once, later ones with their
/// number once a minute. One thread.
class DroppedKinds {
public:
  using Time = std::chrono::steady_clock::time_point;

  /// How many messages of this kind were dropped since that was last said, if it is to be said now;
  /// else 0.
  std::int64_t note(const std::string& kind, Time now) {
    // Reasons may contain a stranger's numbers: those beyond the most known are one kind.
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
