#include "actors/run/merged_trace.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace troupe::actors {

namespace {

constexpr int kLanesPerThread = 64; // lane numbers for overlapping spans

struct Window {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
};

/// Returns the period from the first to the last span of the learners, or of all actors if there is
/// no learner.
Window window_of(const std::vector<TraceProcess>& processes) {
  const bool learners = std::any_of(processes.begin(), processes.end(), [](const auto& one) {
    return one.learner && !one.spans.empty();
  });
  Window made;
  for (const auto& process : processes)
    if (process.learner || !learners)
      for (const auto& span : process.spans) {
        made.begin = std::min(made.begin, span.begin - process.ahead);
        made.end = std::max(made.end, span.end - process.ahead);
      }
  return made;
}

/// Converts spans to the head's clock and cuts them to the window.
void cut(TraceProcess& process, const Window& window) {
  for (auto& span : process.spans) {
    span.begin = std::max(span.begin - process.ahead, window.begin) - window.begin;
    span.end = std::min(span.end - process.ahead, window.end) - window.begin;
  }
  std::erase_if(process.spans, [](const auto& span) { return span.end < span.begin; });
}

/// Moves spans of a thread that do not nest to separate lanes.
void nest(std::vector<TraceSpan>& spans) {
  std::sort(spans.begin(), spans.end(), [](const TraceSpan& a, const TraceSpan& b) {
    return std::tie(a.lane, a.begin, b.end) < std::tie(b.lane, b.begin, a.end);
  });
  std::map<int, std::vector<std::int64_t>> open; // ends of the open spans, by lane
  for (auto& span : spans) {
    const int first = span.lane * kLanesPerThread;
    int lane = first;
    for (; lane < first + kLanesPerThread - 1; ++lane) {
      auto& ends = open[lane];
      while (!ends.empty() && ends.back() <= span.begin)
        ends.pop_back();
      if (ends.empty() || span.end <= ends.back())
        break;
    }
    open[lane].push_back(span.end);
    span.lane = lane;
  }
}

void append_quoted(std::string& text, const std::string& words) {
  text += '"';
  for (const char c : words)
    text += c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' ? '_' : c;
  text += '"';
}

/// Appends microseconds with three decimals, which keep the nanoseconds.
void append_time(std::string& text, std::int64_t nanoseconds) {
  text += std::to_string(nanoseconds / 1000) + '.';
  text.append(std::to_string(1000 + nanoseconds % 1000), 1, 3);
}

void append_metadata(std::string& text, const char* kind, std::size_t pid, int tid,
                     const std::string& arguments) {
  text += (text.empty() ? "" : ",\n") + std::string(R"({"name":")") + kind + R"(","ph":"M","pid":)"
          + std::to_string(pid) + ",\"tid\":" + std::to_string(tid) + ",\"args\":{" + arguments
          + "}}";
}

void append_process(std::string& text, const TraceProcess& process, std::size_t pid) {
  std::string about = "\"name\":";
  append_quoted(about, process.name + " (process " + std::to_string(process.process) + ")");
  about += ",\"dropped_spans\":" + std::to_string(process.dropped) + ",\"clock\":";
  append_quoted(about, process.same_clock ? "the head's" : "estimated by round trips");
  about += ",\"clock_error_us\":";
  append_time(about, process.error);
  append_metadata(text, "process_name", pid, 0, about);
  append_metadata(text, "process_sort_index", pid, 0, "\"sort_index\":" + std::to_string(pid));
  std::map<int, bool> lanes;
  for (const auto& span : process.spans)
    lanes[span.lane] = true;
  for (const auto& [lane, used] : lanes) {
    const int thread = lane / kLanesPerThread;
    std::string name = "\"name\":";
    append_quoted(name, "thread " + std::to_string(thread)
                            + (lane % kLanesPerThread > 0 ? ", overlapping" : ""));
    append_metadata(text, "thread_name", pid, lane, name);
  }
  for (const auto& span : process.spans) {
    text += ",\n{\"name\":";
    append_quoted(text, span.index < 0 ? span.name : span.name + ' ' + std::to_string(span.index));
    text += R"(,"ph":"X","pid":)" + std::to_string(pid) + ",\"tid\":" + std::to_string(span.lane)
            + ",\"ts\":";
    append_time(text, span.begin);
    text += ",\"dur\":";
    append_time(text, span.end - span.begin);
    text += '}';
  }
}

} // namespace

void ClockBounds::add(std::int64_t asked, std::int64_t other, std::int64_t answered) {
  any_ = true;
  least_ = std::max(least_, other - answered);
  most_ = std::min(most_, other - asked);
}

std::int64_t ClockBounds::ahead() const {
  return any_ ? least_ + (most_ - least_) / 2 : 0;
}

std::int64_t ClockBounds::error() const {
  return any_ ? std::max<std::int64_t>(0, (most_ - least_ + 1) / 2) : 0;
}

MergedTrace merged_trace(std::vector<TraceProcess> processes) {
  const Window window = window_of(processes);
  MergedTrace made;
  if (window.end >= window.begin)
    made.nanoseconds = window.end - window.begin;
  std::string events;
  for (auto& process : processes) {
    cut(process, window);
    nest(process.spans);
    append_process(events, process, ++made.processes);
    made.spans += process.spans.size();
    made.clock_error = std::max(made.clock_error, process.error);
  }
  made.text = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"clock_error_us\":";
  append_time(made.text, made.clock_error);
  made.text += "},\"traceEvents\":[\n" + events + "\n]}\n";
  return made;
}

} // namespace troupe::actors
