#include "actors/supervision/process_table.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {
constexpr std::int64_t kLongestLeave = 10 * kTicksPerSecond; // after which it is killed
} // namespace

std::int64_t ticks(double seconds) {
  return static_cast<std::int64_t>(seconds * static_cast<double>(kTicksPerSecond));
}

double seconds_of(std::int64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(kTicksPerSecond);
}

std::string number(double value) {
  std::string text = std::to_string(value); // "0.500000"
  text.erase(text.find_last_not_of('0') + 1);
  return text.back() == '.' ? text.substr(0, text.size() - 1) : text;
}

void ProcessTable::enter(Process& process, Process::Phase phase) {
  process.phase = phase;
  process.since = now_;
}

Process::Phase ProcessTable::phase(const ActorKey& key) const {
  const auto found = processes_.find(key);
  return found == processes_.end() ? Process::Phase::absent : found->second.phase;
}

bool ProcessTable::spawn(const ActorKey& key, std::uint64_t incarnation,
                         std::int64_t steps_before) {
  auto& process = processes_[key];
  process.incarnation = incarnation;
  process.steps_before = steps_before;
  process.node.clear(); // its former node may be lost while it waits
  enter(process, Process::Phase::starting);
  process.waiting = process.not_before > now_;
  return !process.waiting;
}

void ProcessTable::expect(const ActorKey& key, std::uint64_t incarnation, int process) {
  auto& entry = processes_[key];
  entry.incarnation = incarnation;
  entry.id = process;
  enter(entry, Process::Phase::starting);
  entry.come_by = now_ + ticks(options_.lost_seconds);
}

void ProcessTable::place(const ActorKey& key, const std::string& node) {
  auto& process = processes_.at(key);
  process.node = node;
  process.waiting = false;
  process.problem.clear();
}

void ProcessTable::wait(const ActorKey& key, const std::string& problem) {
  auto& process = processes_.at(key);
  process.node.clear();
  process.waiting = true;
  process.problem = problem;
}

void ProcessTable::up(const ActorKey& key, int process) {
  auto& entry = processes_.at(key);
  enter(entry, Process::Phase::up);
  entry.come_by = 0;
  entry.id = process;
}

void ProcessTable::remove(const ActorKey& key) {
  auto& process = processes_.at(key);
  enter(process, Process::Phase::absent);
  process.waiting = false;
  process.id = 0;
  process.come_by = 0;
}

bool ProcessTable::leave(const ActorKey& key) {
  auto& process = processes_.at(key);
  if (process.phase == Process::Phase::up && options_.own_processes) {
    enter(process, Process::Phase::leaving);
    process.leave_by = now_ + kLongestLeave;
  }
  return process.phase == Process::Phase::leaving;
}

bool ProcessTable::is_replaceable(Role role, bool failed) const {
  if (role == Role::environment || role == Role::evaluator || role == Role::parameter_server)
    return true;
  return options_.own_processes && !failed; // a failed computation would fail again
}

ProcessTable::Death ProcessTable::die(const ActorKey& key, std::string reason, bool failed) {
  if (!is_replaceable(key.first, failed))
    return {std::move(reason), false};
  auto& process = processes_.at(key);
  const RestartBudget::Limits limits{.restarts = options_.restarts,
                                     .minutes = options_.restart_minutes};
  const double now = seconds_of(now_);
  const bool first = process.deaths.recent(now, limits.minutes) == 0;
  const bool restart = process.deaths.die(now, limits);
  process.not_before = now_ + ticks(process.deaths.delay_seconds());
  if (!restart && !first)
    reason += "; that is " + process.deaths.words(limits);
  return {std::move(reason), restart};
}

std::int64_t ProcessTable::recent_deaths(const ActorKey& key) const {
  return processes_.at(key).deaths.recent(seconds_of(now_), options_.restart_minutes);
}

ProcessTable::Due ProcessTable::due(const ActorKey& key) {
  auto& process = processes_.at(key);
  if (process.waiting && now_ >= process.not_before) {
    process.waiting = false;
    return Due::start;
  }
  if (process.come_by > 0 && now_ > process.come_by)
    return Due::missing;
  if (process.phase == Process::Phase::leaving && now_ > process.leave_by)
    return Due::kill;
  return Due::nothing;
}

bool ProcessTable::any_up() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const auto& entry) { return entry.second.phase == Process::Phase::up; });
}

} // namespace troupe::actors
