#pragma once

#include <set>
#include <utility>

#include "actors/run/run_actors.hpp"
#include "actors/run/run_checkpoints.hpp"
#include "actors/run/run_schedule.hpp"

namespace troupe::actors {

/// Starts the run's actors and restores dead ones to their state.
class Lifecycle {
public:
  /// `progress` is read whenever an actor starts.
  Lifecycle(const RunContext& context, RunActors& actors, RunSchedule& schedule,
            const RunCheckpoints& checkpoints, const Progress& progress)
      : context_(context),
        actors_(actors),
        schedule_(schedule),
        checkpoints_(checkpoints),
        progress_(progress) {}

  /// Starts all actors of a role and waits until they are up.
  void start(Role role);
  /// Gives a shard the rate limiter that an operator wants, if one does. Throws as
  /// RunActors::ask().
  void limit(const ActorKey& shard);
  /// Has the next restart_lost() start an actor that is new or was asked to leave.
  void add(const ActorKey& key) { added_.insert(key); }
  /// Restarts what died and starts what was added. An actor that dies meanwhile is in lost() again.
  void restart_lost();
  /// Learners have come back since the last call, with the state that the others have or an earlier
  /// one.
  bool learners_came_back() { return std::exchange(learners_came_back_, false); }
  /// Actors that were started again and are not yet back to where they were.
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
