#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// One span of an actor's work, in nanoseconds of its own clock.
struct TraceSpan {
  std::string name;
  int index = -1; // as in "reduce 3"; -1: none
  int lane = 0;   // identifies the thread
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Bounds the offset of a process's clock from the head's clock. Each answer gives two bounds: the
/// process read its clock after the head's request and before the head received the answer.
class ClockBounds {
public:
  /// Nanoseconds: the head's clock at its request and at the answer, and the other clock's time in
  /// between.
  void add(std::int64_t asked, std::int64_t other, std::int64_t answered);
  bool known() const { return most_ >= least_; }
  std::int64_t ahead() const; // of the head's clock; 0 if unknown
  std::int64_t error() const; // maximum error of ahead()
  bool allows(std::int64_t ahead) const { return ahead >= least_ && ahead <= most_; }

private:
  std::int64_t least_ = INT64_MIN, most_ = INT64_MAX;
  bool any_ = false;
};

struct TraceProcess {
  std::string name;         // "learner 0"
  bool learner = false;     // learners determine the period of the trace
  int process = 0;          // id on its host
  bool same_clock = false;  // as the head, because they share a host
  std::int64_t ahead = 0;   // of the head's clock, nanoseconds
  std::int64_t error = 0;   // of `ahead`
  std::int64_t dropped = 0; // spans for which there was no space
  std::vector<TraceSpan> spans = {};
};

struct MergedTrace {
  std::string text; // Chrome trace in JSON
  std::int64_t nanoseconds = 0;
  std::size_t spans = 0, processes = 0; // in the trace
  std::int64_t clock_error = 0;         // maximum over the processes, nanoseconds
};

/// Merges the spans into one Chrome trace, for Perfetto, of the period that the learners' spans
/// cover. Each actor becomes a process of the trace. Times are in microseconds of the head's clock
/// since the first span. Spans are cut to that period. If two spans of a thread overlap and neither
/// contains the other, one of them gets another lane. Pure function.
MergedTrace merged_trace(std::vector<TraceProcess> processes);

} // namespace troupe::actors
