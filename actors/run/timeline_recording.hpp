#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "actors/run/merged_trace.hpp"
#include "actors/run/run_actors.hpp"

namespace troupe::actors {

/// Records what learners, environment actors and shards do during some updates, and writes
/// <run>/timelines/<updates>.json. Training continues. The head calls serve() between the steps of
/// its loop until it is over.
///
/// First all actors but the learners start to record, then the learners, which stop by themselves
/// after their updates; then all hand over their spans. The clocks of other hosts are compared with
/// the head's by the round trips of these questions and some more.
class TimelineRecording {
public:
  TimelineRecording(const RunContext& context, RunActors& actors)
      : context_(context), actors_(actors) {}

  void begin(std::int64_t updates);
  bool begun() const { return phase_ != Phase::idle; }
  /// Does the next part; returns a problem, or sets `done` to a sentence with the file's path. If
  /// both are empty there is more to do.
  std::string serve(const Progress& progress, std::string& done);
  /// Ends it without a result; actors record no more.
  void cancel();

private:
  enum class Phase : std::uint8_t { idle, start_others, record, merge };
  struct Part {
    ActorKey key;
    caf::actor who;
    TraceProcess trace = {};
    ClockBounds clock = {};
    std::string boot = {};
    bool recording = true; // as it said last
    bool missing = false;  // an answer
    std::string problem = {};
    PendingRequest request = {};
  };
  void ask(Part& part, const wire::SpansOrder& order);
  void ask_all(const wire::SpansOrder& order, const std::function<bool(const Part&)>& whom);
  void take(Part& part, const wire::SpansPart& told, std::int64_t asked);
  void compare_clocks();
  std::string write(const Progress& progress, std::string& done);

  const RunContext& context_;
  RunActors& actors_;
  Phase phase_ = Phase::idle;
  std::int64_t updates_ = 0;
  std::int64_t capacity_ = 0; // spans of each
  int rounds_ = 0;            // of comparing clocks
  std::vector<Part> parts_;   // does not grow while questions are open
};

} // namespace troupe::actors
