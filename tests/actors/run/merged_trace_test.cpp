// One trace of several processes, in the format that other programs read.
#include "actors/run/merged_trace.hpp"

#include <map>

#include <nlohmann/json.hpp>

#include "tests/doctest_torch.hpp"

namespace troupe::actors {
namespace {

constexpr std::int64_t kStart = 5'000'000'000'000; // nanoseconds on some clock

TraceSpan traced(const char* name, std::int64_t begin, std::int64_t end, int lane = 0,
                 int index = -1) {
  return {.name = name, .index = index, .lane = lane, .begin = kStart + begin, .end = kStart + end};
}

/// A learner of 10 µs with a shard on its host, and an environment actor on a host whose clock is
/// 7 s ahead.
std::vector<TraceProcess> three() {
  TraceProcess learner{.name = "learner 0", .learner = true, .process = 11, .same_clock = true};
  learner.spans = {traced("wait", 0, 2000), traced("update", 2000, 9000),
                   traced("optimizer", 7000, 8500), traced("reduce", 3000, 8000, 0, 3),
                   traced("publish", 9000, 10'001)};
  TraceProcess shard{.name = "replay \"0\"", .process = 12, .same_clock = true, .dropped = 4};
  shard.spans = {traced("sample", -500, 400), traced("insert", 20'000, 21'000)};
  constexpr std::int64_t kAhead = 7'000'000'000;
  TraceProcess away{.name = "environment 0", .process = 11, .ahead = kAhead, .error = 1500};
  away.spans = {traced("step", kAhead + 1000, kAhead + 3000, 1),
                traced("wait", kAhead - 9'000'000, kAhead + 900'000, 0)};
  return {learner, shard, away};
}

/// Parses strictly: each event has exactly the fields of the format, and its process has a name.
nlohmann::json checked_trace(const std::string& text) {
  const auto trace = nlohmann::json::parse(text); // throws
  std::map<int, std::string> processes;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("name") == "process_name")
      processes[event.at("pid").get<int>()] = event.at("args").at("name");
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> lanes;
  for (const auto& event : trace.at("traceEvents")) {
    CHECK(processes.contains(event.at("pid").get<int>()));
    CHECK(event.at("tid").is_number_integer());
    CHECK_FALSE(event.at("name").get<std::string>().empty());
    if (event.at("ph") == "M")
      continue;
    CHECK(event.at("ph") == "X");
    CHECK(event.size() == 6);
    const double begin = event.at("ts"), length = event.at("dur");
    CHECK(begin >= 0);
    CHECK(length >= 0);
    lanes[{event.at("pid"), event.at("tid")}].emplace_back(begin, begin + length);
  }
  for (const auto& [lane, spans] : lanes)
    for (const auto& [begin, end] : spans)
      for (const auto& [other_begin, other_end] : spans) { // nested or disjoint
        const bool apart = end <= other_begin + 1e-9 || other_end <= begin + 1e-9;
        const bool inside = (begin >= other_begin && end <= other_end)
                            || (other_begin >= begin && other_end <= end);
        CHECK((apart || inside));
      }
  return trace;
}

TEST_CASE("A merged trace uses one clock, covers the learner's time and nests spans") {
  const MergedTrace made = merged_trace(three());
  CHECK(made.processes == 3);
  CHECK(made.nanoseconds == 10'001);
  CHECK(made.clock_error == 1500);
  const auto trace = checked_trace(made.text);
  CHECK(trace.at("otherData").at("clock_error_us") == 1.5);
  std::map<std::string, nlohmann::json> spans;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("ph") == "X")
      spans[std::to_string(event.at("pid").get<int>()) + ' ' + std::string(event.at("name"))] =
          event;
  CHECK(spans.size() == made.spans);
  CHECK(spans.at("1 publish").at("dur") == 1.001);
  CHECK(spans.at("1 reduce 3").at("ts") == 3.0);
  CHECK(spans.at("1 optimizer").at("tid") != spans.at("1 reduce 3").at("tid")); // they overlap
  CHECK(spans.at("2 sample").at("ts") == 0.0);                                  // began earlier
  CHECK(spans.at("2 sample").at("dur") == 0.4);
  CHECK_FALSE(spans.contains("2 insert")); // came later
  CHECK(spans.at("3 step").at("ts") == 1.0);
  CHECK(spans.at("3 step").at("dur") == 2.0);
  CHECK(spans.at("3 wait").at("ts") == 0.0);
  CHECK(spans.at("3 wait").at("dur") == 10.001);
}

TEST_CASE("A trace without spans, or of processes without spans, is valid") {
  checked_trace(merged_trace({}).text);
  TraceProcess silent{.name = "replay 0"};
  const MergedTrace made = merged_trace({silent});
  checked_trace(made.text);
  CHECK(made.spans == 0);
  CHECK(made.nanoseconds == 0);
}

TEST_CASE("Round trips bound a clock offset from both sides") {
  ClockBounds clock;
  CHECK(clock.error() == 0);
  clock.add(100, 1150, 200); // the other clock is ahead by 950 to 1050
  CHECK(clock.ahead() == 1000);
  CHECK(clock.error() == 50);
  clock.add(300, 1310, 400); // by 910 to 1010
  CHECK(clock.ahead() == 980);
  CHECK(clock.error() == 30);
  CHECK(clock.allows(1000));
  CHECK_FALSE(clock.allows(0)); // a different clock, whatever its host says
}

} // namespace
} // namespace troupe::actors
