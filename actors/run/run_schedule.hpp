#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages.pb.h"
#include "actors/protocol/run_config.hpp"

namespace troupe::actors {

/// Whether a run has reached stop.minutes.
bool out_of_time(const RunConfig& config, const Progress& now);

/// Decides how far environments and learners may go, when to evaluate and when the run is complete.
/// Pure decisions from counters, without actors or a clock.
class RunSchedule {
public:
  /// `before`: the counters that a resumed run continues from. `begun`: training has already begun
  /// under a previous head.
  RunSchedule(const RunConfig& config, const wire::RunState& before, bool begun = false);

  /// The number of actors of a role, after scaling.
  int count(Role role) const;
  void scale(int environment_actors) { environments_ = environment_actors; }
  /// The ratio of samples to inserts as an operator changed it; empty: as configured.
  struct Ratio {
    double samples_per_insert = 0, error_buffer = 0;
  };
  std::optional<Ratio>& ratio() { return ratio_; }
  /// Whether the head must ask for the number of items at the end of a round, because it does not
  /// follow from the steps.
  bool counts_items() const {
    return config_.on_policy() || config_.replay.hindsight.goals > 0
           || (!config_.workload && config_.agent->storage().whole_episodes);
  }
  /// Whether the run has reached its steps, updates or minutes.
  bool complete(const Progress& now) const;

  void begin_training(const Progress& now);
  /// Begins a pause; training() stays true until all actors stand still.
  void pause() { paused_ = true; }
  void end_training() { training_ = false; }
  bool paused() const { return paused_; }
  bool training() const { return training_; }
  /// Whether training has begun at least once.
  bool begun() const { return begun_; }

  /// The total number of updates that learners may have made.
  std::int64_t updates() const { return updates_; }
  /// Grants updates a little ahead of the updates made: of the first replica, or, if replicas do
  /// not wait for each other, of the one with the most. A workload gets none beyond its next
  /// evaluation; an on-policy agent gets as many as there are items for. Never lowers updates().
  std::int64_t extend_updates(const Progress& now);
  /// The total number of updates after which a learner stops for a pause, unless it has made more.
  /// A single learner makes as many as the items are worth. Replicas that do not wait for each
  /// other stop where they are (0), except at an evaluation of a workload, and at the end of a run
  /// whose length is a number of updates. kAllGranted for replicas whose numbers must agree, and
  /// for learners whose updates do not follow from samples_per_insert.
  std::int64_t updates_before_pause(const Progress& now) const;
  /// Called when the learners have come back with an earlier state and stand still.
  void learners_came_back(const Progress& now);

  /// Begins a round. Returns the steps that each environment may make since the run (re)started.
  std::int64_t begin_round();
  /// Grants the updates that are due at the end of a round. If counts_items(), `now` must be
  /// counted after the round ended.
  std::int64_t finish_round(const Progress& now);

  /// Returns the agent steps that each environment of an actor may make since the actor's start:
  /// those made before the last pause and the actor's share of the remaining ones.
  std::int64_t steps(std::int32_t environment_actor, const Progress& now) const;
  /// Allows each actor to make all remaining steps. Returns false if they already could.
  bool share_steps();
  void paused_at(std::int32_t environment_actor, std::int64_t steps);
  /// Called when the actor died or left; a restarted actor counts its steps from 0.
  void forget(const ActorKey& key);
  /// Returns the agent steps per environment that were made before an actor that starts now.
  std::int64_t steps_before(const Progress& now) const;

  bool evaluation_due(const Progress& now) const;
  /// Sets the time of the next evaluation.
  void evaluated(const Progress& now);

  void write(wire::RunState& state) const;

private:
  std::int64_t lanes() const; // environments over all environment actors
  std::int64_t evaluation_clock(const Progress& now) const;
  std::int64_t items_of_rounds(std::int64_t inserts) const;
  std::int64_t updates_due(std::int64_t items) const; // by samples_per_insert
  /// The counts of the shards, without items of earlier sessions that they did not restore.
  std::int64_t inserts(const Progress& now) const;
  std::int64_t samples(const Progress& now) const;
  std::int64_t grant(std::int64_t updates);
  std::int64_t updates_made(const Progress& now) const;
  double pace(const Progress& now);

  const RunConfig& config_;
  wire::RunState before_;
  const bool asynchronous_; // replicas do not wait for each other
  int environments_;        // number of actors
  std::optional<Ratio> ratio_;
  bool training_ = false, paused_ = true, begun_;
  std::int64_t updates_;
  std::int64_t samples_from_ = 0, updates_from_ = 0; // when the learners last stood still
  std::int64_t due_from_items_, due_from_updates_;   // counts from which updates_due() counts
  std::int64_t inserts_seen_ = 0;
  std::int64_t lane_steps_;      // granted to each environment, in rounds
  std::int64_t next_evaluation_; // environment steps, or updates
  bool shared_ = false;          // whether each actor may make all remaining steps
  double seen_seconds_ = 0, latest_pace_ = 0;
  std::int64_t seen_updates_ = 0; // updates at seen_seconds_
  std::map<std::int32_t, std::int64_t>
      steps_made_; // per environment of an actor, at the last pause
};

} // namespace troupe::actors
