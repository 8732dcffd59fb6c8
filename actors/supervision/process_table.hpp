#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "actors/protocol/messages.hpp"
#include "actors/supervision/restart_budget.hpp"

namespace troupe::actors {

/// The supervisor's clock counts ticks of 0.2 s.
constexpr std::int64_t kTicksPerSecond = 5;
std::int64_t ticks(double seconds);
double seconds_of(std::int64_t ticks);
std::string number(double value); // for example "15" or "0.5"

/// What the supervisor knows about one actor of the run, and about its process if it has its own.
struct Process {
  enum class Phase : std::uint8_t { absent, starting, up, leaving };
  Phase phase = Phase::absent;
  std::uint64_t incarnation = 0;
  std::int64_t steps_before = 0;
  std::string node;            // where its process runs; empty until it has a place
  int id = 0;                  // process id on its host
  bool waiting = false;        // until not_before, or for a node
  std::string problem;         // why it has no node
  std::int64_t since = 0;      // tick at which the phase began
  std::int64_t not_before = 0; // tick of its next start
  std::int64_t leave_by = 0;   // tick at which it is killed if it has not left
  std::int64_t come_by = 0;    // if a dead head had started it: tick at which it counts as lost
  RestartBudget deaths;
};

/// Decides which actors to start, restart and give up. Pure: no actor, process or clock.
class ProcessTable {
public:
  struct Options {
    int restarts = 0; // of each actor within restart_minutes
    double restart_minutes = 0;
    double lost_seconds = 0;    // for a process of a dead head to join
    bool own_processes = false; // each actor has its own process
  };
  ProcessTable() = default;
  explicit ProcessTable(Options options) : options_(options) {}

  std::int64_t now() const { return now_; }
  void tick() { ++now_; }
  const std::map<ActorKey, Process>& all() const { return processes_; }
  bool contains(const ActorKey& key) const { return processes_.contains(key); }
  const Process& at(const ActorKey& key) const { return processes_.at(key); }
  Process::Phase phase(const ActorKey& key) const; // absent if unknown

  /// Begins an incarnation. Returns false if it must wait because it died recently.
  bool spawn(const ActorKey& key, std::uint64_t incarnation, std::int64_t steps_before);
  /// Expects an incarnation that a dead head had started to be up within lost_seconds.
  void expect(const ActorKey& key, std::uint64_t incarnation, int process);
  /// place(): the actor has a place on `node`. wait(): it waits for one because of `problem`.
  void place(const ActorKey& key, const std::string& node);
  void wait(const ActorKey& key, const std::string& problem);
  void up(const ActorKey& key, int process);
  void remove(const ActorKey& key);
  /// Returns true if the actor leaves in order and is gone later, false if it can be removed at
  /// once.
  bool leave(const ActorKey& key);

  /// Counts a death; `failed`: the actor ended with an exception. The more deaths there were, the
  /// later the restart, if any. If the budget is exceeded, `reason` says so.
  struct Death {
    std::string reason;
    bool restart = false;
  };
  Death die(const ActorKey& key, std::string reason, bool failed);
  std::int64_t recent_deaths(const ActorKey& key) const;

  /// What to do about an actor at this tick.
  enum class Due : std::uint8_t { nothing, start, kill, missing };
  Due due(const ActorKey& key);
  bool any_up() const;

private:
  bool is_replaceable(Role role, bool failed) const;
  void enter(Process& process, Process::Phase phase);

  Options options_;
  std::int64_t now_ = 0;
  std::map<ActorKey, Process> processes_;
};

} // namespace troupe::actors
