#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// What one actor did, in nanoseconds by its own clock.
struct TraceSpan {
  std::string name;
  int index = -1; // "reduce 3"; -1: none
  int lane = 0;   // of the thread
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The offset of a process's clock from the head's, from both sides of every answer: what its
/// clock said lies between the head's question and the head's receipt.
class ClockBounds {
public:
  /// Nanoseconds: the head's clock when it asked and when it had the answer, the other's between.
  void add(std::int64_t asked, std::int64_t other, std::int64_t answered);
  bool known() const { return most_ >= least_; }
  std::int64_t ahead() const; // of the head's clock; 0 if it is not known
  std::int64_t error() const; // the true offset is within this of ahead()
  bool allows(std::int64_t ahead) const { return ahead >= least_ && ahead <= most_; }

private:
  std::int64_t least_ = INT64_MIN, most_ = INT64_MAX;
  bool any_ = false;
};

struct TraceProcess {
  std::string name;         // "learner 0"
  bool learner = false;     // its spans say from when to when
  int process = 0;          // id on its host
  bool same_clock = false;  // as the head's: one host
  std::int64_t ahead = 0;   // of the head's clock, nanoseconds
  std::int64_t error = 0;   // of `ahead`
  std::int64_t dropped = 0; // spans that had no room
  std::vector<TraceSpan> spans = {};
};

struct MergedTrace {
  std::string text; // a Chrome trace: JSON
  std::int64_t nanoseconds = 0;
  std::size_t spans = 0, processes = 0; // in it
  std::int64_t clock_error = 0;         // the greatest of any process, nanoseconds
};

/// One Chrome trace, for Perfetto, of what happened while the learners' spans lasted: a process of
/// the trace for each actor, times from the first span on by the head's clock, in microseconds.
/// Spans are cut to that time; where two of a thread overlap and neither is inside the other, one
/// gets another lane. Pure.
MergedTrace merged_trace(std::vector<TraceProcess> processes);

} // namespace troupe::actors
