#pragma once

#include <set>
#include <utility>

#include "actors/run/run_actors.hpp"
#include "actors/run/run_checkpoints.hpp"
#include "actors/run/run_schedule.hpp"

namespace troupe::actors {

/// Starts the run's actors, restarts dead ones and restores their state.
class Lifecycle {
public:
  /// Reads `progress` whenever an actor starts.
  Lifecycle(const RunContext& context, RunActors& actors, RunSchedule& schedule,
            const RunCheckpoints& checkpoints, const Progress& progress)
      : context_(context),
        actors_(actors),
        schedule_(schedule),
        checkpoints_(checkpoints),
        progress_(progress) {}

  /// Starts all actors of a role and waits until they are up.
  void start(Role role);
  /// Gives a shard the rate limiter that an operator has set, if any. Throws as RunActors::ask().
  void limit(const ActorKey& shard);
  /// Makes the next restart_lost() start an actor that is new or was asked to leave.
  void add(const ActorKey& key) { added_.insert(key); }
  /// Restarts dead actors and starts added ones. An actor that dies meanwhile is in lost() again.
  void restart_lost();
  /// Whether learners have come back since the last call, with the other learners' state or an
  /// earlier one.
  bool learners_came_back() { return std::exchange(learners_came_back_, false); }
  /// Actors that were restarted and do not yet have their former state.
  const std::set<ActorKey>& returning() const { return returning_; }

private:
  void spawn(const ActorKey& key);
  void rescue_learners();
  void await_restarts();
  void bring_up_to_date(const ActorKey& key);

  const RunContext& context_;
  RunActors& actors_;
  RunSchedule& schedule_;
  const RunCheckpoints& checkpoints_;
  const Progress& progress_;
  std::set<ActorKey> added_, returning_;
  bool learners_came_back_ = false;
};

} // namespace troupe::actors
