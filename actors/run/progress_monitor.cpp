#include "actors/run/progress_monitor.hpp"

namespace troupe::actors {

namespace {

constexpr std::chrono::seconds kStandstill{30};
constexpr std::chrono::milliseconds kProgressPeriod{500};
constexpr std::size_t kMostFailures = 10; // shown by `troupe status`

double elapsed_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

} // namespace

double ProgressMonitor::still_seconds() const {
  return elapsed_since(still_since_);
}

bool ProgressMonitor::take(const Update& update, std::int64_t refused_connections,
                           std::int64_t failed_copies, bool training) {
  if (update.number > newest_) { // an update in the mailbox may be older than an answer
    newest_ = update.number;
    progress_ = update.progress;
    counters_ = update.state;
  }
  progress_.failed_copies = failed_copies;
  progress_.taken_over = taken_over_;
  progress_.refused_connections = refused_connections;
  for (const std::string& warning : update.warnings)
    context_.log("warning", warning);
  if (context_.callbacks.episode)
    for (const auto& [episode_return, length] : update.episodes)
      context_.callbacks.episode(progress_.environment_steps, episode_return, length);
  const auto now = Clock::now();
  if (context_.callbacks.progress && !held_back_ && now - last_report_ >= kProgressPeriod) {
    last_report_ = now;
    context_.callbacks.progress(progress_);
  }
  const std::int64_t moved = progress_.agent_steps + progress_.updates;
  if (moved != moved_ || !training) {
    moved_ = moved;
    still_since_ = last_warning_ = now;
    return false;
  }
  if (now - last_warning_ <= kStandstill)
    return false;
  last_warning_ = now;
  return true;
}

std::string ProgressMonitor::standstill(const Update& update, const std::string& asking,
                                        const std::set<ActorKey>& returning) const {
  std::string text =
      "nothing has moved for " + std::to_string(static_cast<std::int64_t>(still_seconds())) + " s";
  if (!asking.empty())
    text += "; head: " + asking;
  for (const auto& [role, index] : returning)
    text += "; " + std::string(role_name(role)) + " " + std::to_string(index) + ": is restarting";
  for (const auto& line : update.progress.waits)
    text += "; " + line;
  return text + (update.progress.waits.empty() ? "; no actor reports what it waits for" : "");
}

void ProgressMonitor::note_failure(const std::string& what) {
  failures_.emplace_back(Clock::now(), what);
  if (failures_.size() > kMostFailures)
    failures_.pop_front();
}

void ProgressMonitor::write(wire::HeadReport& report, bool training) const {
  report.set_age(elapsed_since(began_));
  report.set_still(training ? still_seconds() : 0);
  for (const auto& [when, what] : failures_) {
    auto& failure = *report.add_failures();
    failure.set_age(elapsed_since(when));
    failure.set_text(what);
  }
}

} // namespace troupe::actors
