#include "actors/run/timeline_recording.hpp"

#include <algorithm>
#include <fstream>
#include <utility>

#include "actors/roles/files.hpp"
#include "actors/roles/span_recorder.hpp"

namespace troupe::actors {

namespace {

constexpr std::size_t kMostRecorded = 256;         // actors
constexpr std::int64_t kMostMergedSpans = 100'000; // of all actors; about 12 MB as text
constexpr std::int64_t kMostActorSpans = 10'000;
constexpr int kClockRounds = 16;
constexpr std::size_t kKeptTimelines = 10; // number of files
constexpr std::chrono::seconds kSpansDeadline{30};

std::int64_t head_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

wire::SpansOrder order_to(wire::SpansOrder::What what) {
  wire::SpansOrder order;
  order.set_what(what);
  return order;
}

std::string short_name(const std::string& name) { // "wait" of "learner.wait"
  return name.substr(name.find('.') + 1);
}

/// Reads spans that another process sent: only as many as all arrays have.
void read_spans(const wire::SpansPart& told, std::vector<TraceSpan>& spans) {
  const int count = std::min({told.name_size(), told.index_size(), told.lane_size(),
                              told.begin_size(), told.duration_size()});
  for (int i = 0; i < count && std::ssize(spans) < kMostActorSpans; ++i)
    if (told.name(i) >= 0 && told.name(i) < told.names_size() && told.duration(i) >= 0
        && told.lane(i) >= 0 && told.lane(i) < 1024)
      spans.push_back({.name = short_name(told.names(told.name(i))),
                       .index = static_cast<int>(told.index(i)),
                       .lane = static_cast<int>(told.lane(i)),
                       .begin = told.begin(i),
                       .end = told.begin(i) + told.duration(i)});
}

void write_trace(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  const auto partial = file.parent_path() / ".partial.json";
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out)
    throw std::runtime_error(partial.string() + ": cannot be written; is the disk full?");
  std::filesystem::rename(partial, file);
  std::vector<std::pair<std::int64_t, std::filesystem::path>> all;
  for (const auto& entry : std::filesystem::directory_iterator(file.parent_path())) {
    if (const std::int64_t number = number_of(entry.path().stem()); number >= 0)
      all.emplace_back(number, entry.path());
  }
  std::sort(all.begin(), all.end());
  std::error_code ignored; // remove as many as possible
  for (std::size_t i = 0; i + kKeptTimelines < all.size(); ++i)
    if (all[i].second != file)
      std::filesystem::remove(all[i].second, ignored);
}

std::string milliseconds_text(std::int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", static_cast<double>(nanoseconds) / 1e6);
  return text;
}

} // namespace

void TimelineRecording::begin(std::int64_t updates) {
  cancel();
  updates_ = updates;
  rounds_ = 0;
  for (const Role role : {Role::learner, Role::replay, Role::environment})
    for (const ActorKey& key : actors_.keys(role))
      if (parts_.size() < kMostRecorded)
        parts_.push_back(
            {.key = key,
             .who = actors_.at(key),
             .trace = {.name = std::string(role_name(role)) + " " + std::to_string(key.second),
                       .learner = role == Role::learner}});
  capacity_ =
      std::min(kMostActorSpans, kMostMergedSpans / std::max<std::int64_t>(1, std::ssize(parts_)));
  auto order = order_to(wire::SpansOrder::START);
  order.set_capacity(capacity_);
  phase_ = Phase::start_others;
  ask_all(order, [](const Part& part) { return part.key.first != Role::learner; });
}

void TimelineRecording::ask(Part& part, const wire::SpansOrder& order) {
  part.missing = true;
  part.request = actors_.request<ProtoBytes>(
      part.who, kSpansDeadline,
      [this, &part, asked = head_clock()](const ProtoBytes& encoded, const caf::error& error) {
        part.missing = false;
        if (error) {
          part.problem = part.trace.name + " did not answer: " + explain(context_.system, error);
          return;
        }
        try {
          take(part, decode<wire::SpansPart>(encoded), asked);
        } catch (const std::exception& e) {
          part.problem = part.trace.name + ": " + e.what();
        }
      },
      spans_atom_v, encode(order));
}

void TimelineRecording::ask_all(const wire::SpansOrder& order,
                                const std::function<bool(const Part&)>& whom) {
  for (Part& part : parts_)
    if (part.problem.empty() && whom(part))
      ask(part, order);
}

void TimelineRecording::take(Part& part, const wire::SpansPart& told, std::int64_t asked) {
  part.clock.add(asked, told.clock(), head_clock());
  part.boot = told.boot();
  part.recording = told.recording();
  part.trace.process = told.process();
  part.trace.dropped = told.dropped();
  read_spans(told, part.trace.spans);
}

/// Compares the clocks. Processes of one host share its clock, unless the answers contradict that.
void TimelineRecording::compare_clocks() {
  for (Part& part : parts_) {
    part.trace.same_clock =
        !part.boot.empty() && part.boot == boot_of_host() && part.clock.allows(0);
    part.trace.ahead = part.trace.same_clock ? 0 : part.clock.ahead();
    part.trace.error = part.trace.same_clock ? 0 : part.clock.error();
  }
}

std::string TimelineRecording::serve(const Progress& progress, std::string& done) {
  std::string problem;
  for (const Part& part : parts_) {
    if (part.missing)
      return {};
    if (problem.empty() && !part.problem.empty())
      problem = part.problem + "; no timeline was written; try again";
  }
  if (!problem.empty()) {
    cancel();
    return problem;
  }
  const auto is_learner = [](const Part& part) { return part.key.first == Role::learner; };
  compare_clocks();
  const bool other_clocks = std::any_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return part.clock.known() && !part.trace.same_clock && !part.boot.empty();
  });
  if (phase_ == Phase::start_others) {
    if (other_clocks && rounds_++ < kClockRounds) {
      ask_all(order_to(wire::SpansOrder::CLOCK), [](const Part& part) {
        return !part.trace.same_clock && part.key.first != Role::learner;
      });
      return {};
    }
    auto order = order_to(wire::SpansOrder::START);
    order.set_capacity(capacity_);
    order.set_updates(updates_);
    ask_all(order, is_learner);
    phase_ = Phase::record;
  } else if (phase_ == Phase::record) {
    if (std::any_of(parts_.begin(), parts_.end(),
                    [&](const Part& part) { return is_learner(part) && part.recording; })) {
      ask_all(order_to(wire::SpansOrder::CLOCK), is_learner);
      return {};
    }
    ask_all(order_to(wire::SpansOrder::TAKE), [](const Part&) { return true; });
    phase_ = Phase::merge;
  } else if (phase_ == Phase::merge) {
    problem = write(progress, done);
    phase_ = Phase::idle;
    parts_.clear();
  }
  return problem;
}

std::string TimelineRecording::write(const Progress& progress, std::string& done) {
  std::vector<TraceProcess> processes;
  for (Part& part : parts_)
    processes.push_back(std::move(part.trace));
  const MergedTrace made = merged_trace(std::move(processes));
  const auto file = std::filesystem::absolute(context_.folder) / "timelines"
                    / (std::to_string(std::max<std::int64_t>(0, progress.updates)) + ".json");
  try {
    write_trace(file, made.text);
  } catch (const std::exception& e) {
    return e.what();
  }
  done = "timeline " + file.string() + ": " + std::to_string(updates_) + " updates, "
         + milliseconds_text(made.nanoseconds) + ", " + std::to_string(made.spans) + " spans of "
         + std::to_string(made.processes) + " actors"
         + (made.clock_error > 0
                ? ", clocks of other hosts within " + milliseconds_text(made.clock_error)
                : "");
  return {};
}

void TimelineRecording::cancel() {
  for (const Part& part : parts_)
    caf::anon_send(part.who, spans_atom_v, encode(order_to(wire::SpansOrder::STOP)));
  parts_.clear();
  phase_ = Phase::idle;
}

} // namespace troupe::actors
