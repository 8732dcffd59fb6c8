#pragma once

#include <chrono>
#include <deque>
#include <set>
#include <string>
#include <utility>

#include "actors/run/metrics_actor.hpp"
#include "actors/run/run_actors.hpp"

namespace troupe::actors {

/// Keeps the run's newest counters, passes them to the run's owner, detects stalls, and keeps the
/// last failures for `troupe status`.
class ProgressMonitor {
public:
  explicit ProgressMonitor(const RunContext& context) : context_(context) {}

  const Progress& progress() const { return progress_; }
  const wire::RunState& counters() const { return counters_; }
  double still_seconds() const; // time since the last progress

  /// Calls the owner's callbacks. Returns true when a warning about a stall is due.
  bool take(const Update& update, std::int64_t refused_connections, std::int64_t failed_copies,
            bool training);
  void note_taken_over(std::int64_t processes) { taken_over_ = processes; } // in all progress
  std::int64_t taken_over() const { return taken_over_; }
  /// While true the owner gets no progress, because the counters are incomplete or the run has
  /// had its final evaluation.
  void hold_back(bool held) { held_back_ = held; }
  std::string standstill(const Update& update, const std::string& asking,
                         const std::set<ActorKey>& returning) const;

  void note_failure(const std::string& what);
  /// Fills in the times and failures that `troupe status` shows.
  void write(wire::HeadReport& report, bool training) const;

private:
  using Clock = std::chrono::steady_clock;

  const RunContext& context_;
  Progress progress_;
  wire::RunState counters_;
  bool held_back_ = false;
  std::int64_t taken_over_ = 0;
  std::uint64_t newest_ = 0; // number of the newest update
  std::int64_t moved_ = -1;  // sum of agent steps and updates
  Clock::time_point began_ = Clock::now();
  Clock::time_point last_report_ = Clock::now();
  Clock::time_point still_since_ = Clock::now();
  Clock::time_point last_warning_ = Clock::now(); // or of the last progress
  std::deque<std::pair<Clock::time_point, std::string>> failures_;
};

} // namespace troupe::actors
