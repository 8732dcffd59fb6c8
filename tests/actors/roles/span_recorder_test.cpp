// An actor records its spans while the head asks for them.
#include "actors/roles/span_recorder.hpp"

#include "actors/protocol/stopwatch.hpp"
#include "tests/doctest_torch.hpp"

namespace troupe::actors {
namespace {

wire::SpansOrder order(wire::SpansOrder::What what, std::int64_t capacity = 0,
                       std::int64_t updates = 0) {
  wire::SpansOrder made;
  made.set_what(what);
  made.set_capacity(capacity);
  made.set_updates(updates);
  return made;
}

TEST_CASE("Spans of stages and of calls are kept between start and take") {
  SpanRecorder recorder;
  Stopwatch watch(recorder.timeline());
  watch.lap("learner.wait"); // no recording is active yet
  CHECK_FALSE(recorder.answer(order(wire::SpansOrder::CLOCK)).recording());
  CHECK(recorder.answer(order(wire::SpansOrder::START, 100)).recording());
  { const collectives::Timeline::Span span(recorder.timeline().get(), "insert", 3); }
  watch.lap("learner.update");
  const auto part = recorder.answer(order(wire::SpansOrder::TAKE));
  CHECK_FALSE(part.recording());
  REQUIRE(part.name_size() == 2);
  CHECK(part.names(part.name(0)) == "insert");
  CHECK(part.index(0) == 3);
  CHECK(part.names(part.name(1)) == "learner.update");
  CHECK(part.index(1) == -1);
  CHECK(part.begin(0) >= part.begin(1));
  CHECK(part.begin(0) + part.duration(0) <= part.begin(1) + part.duration(1));
  CHECK(part.clock() >= part.begin(1) + part.duration(1));
  CHECK(part.process() > 0);
  CHECK(part.boot() == boot_of_host());
  watch.lap("learner.wait");
  CHECK(recorder.answer(order(wire::SpansOrder::TAKE)).name_size() == 0); // taken
  CHECK(watch.seconds().size() == 2);
}

TEST_CASE("A learner stops recording after the requested number of updates") {
  SpanRecorder recorder;
  recorder.note_update(); // without a recording
  recorder.answer(order(wire::SpansOrder::START, 100, 2));
  recorder.note_update();
  CHECK(recorder.answer(order(wire::SpansOrder::CLOCK)).recording());
  CHECK(recorder.timeline()->recording());
  recorder.note_update();
  CHECK_FALSE(recorder.timeline()->recording());
  recorder.answer(order(wire::SpansOrder::START, 100));
  for (int i = 0; i < 1000; ++i) // other threads record until they are stopped
    recorder.note_update();
  CHECK(recorder.timeline()->recording());
  CHECK_FALSE(recorder.answer(order(wire::SpansOrder::STOP)).recording());
}

TEST_CASE(
    "The number of spans is bounded for any requested capacity, and dropped spans are counted") {
  SpanRecorder recorder;
  for (const std::int64_t capacity : {std::int64_t{-5}, INT64_MAX}) {
    recorder.answer(order(wire::SpansOrder::START, capacity));
    for (int i = 0; i < 30'000; ++i)
      recorder.timeline()->add("insert", i, {}, {});
    const auto part = recorder.answer(order(wire::SpansOrder::TAKE));
    CHECK(part.name_size() == (capacity < 0 ? 1 : 20'000));
    CHECK(part.dropped() == 30'000 - part.name_size());
    CHECK(part.index(part.index_size() - 1) == 29'999); // the newest spans are kept
  }
}

} // namespace
} // namespace troupe::actors
