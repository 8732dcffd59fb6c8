#include <torch/types.h>

#include "tests/doctest_torch.hpp"

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "collectives/timeline.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::collectives {
namespace {

using Clock = Timeline::Clock;
using std::chrono::microseconds;

nlohmann::json read_trace(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

} // namespace

TEST_CASE("A full timeline drops its oldest spans and counts them") {
  Timeline timeline(0, 2);
  const auto start = Clock::now();
  for (int i = 0; i < 5; ++i)
    timeline.add("step", i, start + microseconds(i), start + microseconds(i + 1));
  const auto events = timeline.events();
  REQUIRE(events.size() == 2);
  CHECK(events[0].index == 3);
  CHECK(events[1].index == 4);
  CHECK(timeline.dropped() == 3);
}

TEST_CASE("A stopped timeline records nothing and restarts without earlier spans") {
  Timeline timeline(0);
  timeline.add("before", -1, {}, {});
  timeline.stop();
  {
    const Timeline::Span nothing(&timeline, "nothing");
    timeline.add("nothing", -1, {}, {});
    timeline.start(1);
  } // a span that began before the recording does not count
  CHECK(timeline.events().empty());
  timeline.add("first", -1, {}, {});
  timeline.add("second", -1, {}, {});
  REQUIRE(timeline.events().size() == 1);
  CHECK(std::string(timeline.events()[0].name) == "second");
  CHECK(timeline.dropped() == 1);
  CHECK_THROWS_AS(timeline.start(0), std::invalid_argument);
}

TEST_CASE("A span ends once, explicitly or with its scope, and a null timeline records nothing") {
  Timeline timeline(0);
  {
    Timeline::Span moved(&timeline, "outer");
    Timeline::Span outer(std::move(moved));
    Timeline::Span inner(&timeline, "inner", 7);
    inner.end();
    const Timeline::Span nothing(nullptr, "nothing");
  }
  const auto events = timeline.events();
  REQUIRE(events.size() == 2);
  CHECK(std::string(events[0].name) == "inner");
  CHECK(events[0].index == 7);
  CHECK(events[0].begin >= events[1].begin);
  CHECK(events[0].end <= events[1].end);
}

TEST_CASE("Clock offsets between threads are zero within their error") {
  const auto errors = on_ranks(Means::threads, 3, [](Communicator& communicator) {
    const auto offsets = measure_clock_offsets(communicator);
    if (offsets.size() != 3 || offsets[0].ahead.count() != 0)
      throw std::runtime_error("rank 0 is not the origin");
    for (const auto& offset : offsets)
      if (std::chrono::abs(offset.ahead) > offset.error)
        throw std::runtime_error("the true offset, 0, lies outside of the error");
  });
  CHECK(all_empty(errors));
}

TEST_CASE("The trace of several ranks is one file in Chrome's format on one clock") {
  const TemporaryFolder folder;
  const auto path = folder / "timeline.json";
  const auto start = Clock::now();
  const auto errors = on_ranks(Means::threads, 3, [&](Communicator& communicator) {
    Timeline timeline(communicator.rank());
    if (communicator.rank() < 2) { // the last rank has recorded nothing
      timeline.add("forward", -1, start + microseconds(10), start + microseconds(30));
      timeline.add("odd \"name\"", communicator.rank(), start + microseconds(30),
                   start + microseconds(31));
    }
    write_timeline({&timeline}, &communicator, path);
  });
  REQUIRE(all_empty(errors));
  const auto trace = read_trace(path);
  int forwards = 0, names = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("name") == "process_name")
      ++names;
    if (event.at("name") != "forward")
      continue;
    ++forwards;
    CHECK(event.at("ph") == "X");
    CHECK(event.at("dur").get<double>() == doctest::Approx(20));
    CHECK(event.at("ts").get<double>() < 5000); // far less than a scheduler's time slice
  }
  CHECK(forwards == 2);
  CHECK(names == 3);
}

TEST_CASE("A timeline of one rank needs no communicator, and a missing folder is named") {
  Timeline timeline(0);
  timeline.add("step", -1, Clock::now(), Clock::now());
  const TemporaryFolder folder;
  const auto path = folder / "timeline.json";
  write_timeline({&timeline}, nullptr, path);
  CHECK(read_trace(path).at("traceEvents").size() == 2);
  CHECK_THROWS_WITH_AS(
      write_timeline({&timeline}, nullptr, "/no/such/folder/t.json"),
      "timeline: cannot write /no/such/folder/t.json; check that its folder exists and "
      "that the disk is not full",
      std::runtime_error);
}

} // namespace troupe::collectives
