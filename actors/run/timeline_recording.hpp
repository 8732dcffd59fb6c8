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
/// its loop until the recording is finished.
///
/// First all actors except the learners start to record. Then the learners start; they stop by
/// themselves after their updates. Finally all actors hand over their spans. The clocks of other
/// hosts are compared with the head's clock by the round trips of these requests and a few more.
class TimelineRecording {
public:
  TimelineRecording(const RunContext& context, RunActors& actors)
      : context_(context), actors_(actors) {}

  void begin(std::int64_t updates);
  bool begun() const { return phase_ != Phase::idle; }
  /// Carries out the next part. Returns a problem, or sets `done` to a sentence with the file's
  /// path. If both are empty, call it again.
  std::string serve(const Progress& progress, std::string& done);
  /// Ends the recording without a result; actors stop recording.
  void cancel();

private:
  enum class Phase : std::uint8_t { idle, start_others, record, merge };
  struct Part {
    ActorKey key;
    caf::actor who;
    TraceProcess trace = {};
    ClockBounds clock = {};
    std::string boot = {};
    bool recording = true; // according to its last answer
    bool missing = false;  // has not answered yet
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
  std::int64_t capacity_ = 0; // maximum number of spans per actor
  int rounds_ = 0;            // of clock comparisons
  std::vector<Part> parts_;   // does not grow while requests are pending
};

} // namespace troupe::actors
