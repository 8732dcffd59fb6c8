#include "actors/roles/span_recorder.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include <unistd.h>

namespace troupe::actors {

namespace {

constexpr std::int64_t kMostSpans = 20'000; // per actor, even if an order allows more

std::int64_t clock_nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

void add_spans(const collectives::Timeline& timeline, wire::SpansPart& made) {
  std::map<std::string, int> numbers; // index of each name
  for (const auto& event : timeline.events()) {
    const auto [at, fresh] = numbers.emplace(event.name, made.names_size());
    if (fresh)
      made.add_names(event.name);
    made.add_name(at->second);
    made.add_index(event.index);
    made.add_lane(event.lane);
    made.add_begin(clock_nanoseconds(event.begin));
    made.add_duration(
        std::max<std::int64_t>(0, clock_nanoseconds(event.end) - clock_nanoseconds(event.begin)));
  }
  made.set_dropped(static_cast<std::int64_t>(timeline.dropped()));
}

} // namespace

const std::string& boot_of_host() {
  static const std::string boot = [] {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string text;
    file >> text;
    return text;
  }();
  return boot;
}

SpanRecorder::SpanRecorder() : timeline_(std::make_shared<collectives::Timeline>(0)) {
  timeline_->stop();
}

void SpanRecorder::count_update() {
  if (updates_left_ > 0 && --updates_left_ == 0)
    timeline_->stop();
}

wire::SpansPart SpanRecorder::answer(const wire::SpansOrder& order) {
  wire::SpansPart made;
  if (order.what() == wire::SpansOrder::START) {
    updates_left_ = std::max<std::int64_t>(0, order.updates());
    timeline_->start(
        static_cast<std::size_t>(std::clamp<std::int64_t>(order.capacity(), 1, kMostSpans)));
  } else if (order.what() == wire::SpansOrder::TAKE) {
    timeline_->stop();
    add_spans(*timeline_, made);
    timeline_->clear();
  } else if (order.what() == wire::SpansOrder::STOP) {
    timeline_->stop();
    timeline_->clear();
  }
  made.set_boot(boot_of_host());
  made.set_process(::getpid());
  made.set_recording(timeline_->recording());
  made.set_clock(clock_nanoseconds(std::chrono::steady_clock::now()));
  return made;
}

} // namespace troupe::actors
