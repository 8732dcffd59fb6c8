#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/run/checkpoint_copies.hpp"
#include "actors/run/run_actors.hpp"

namespace troupe::actors {

/// Writes the run's checkpoints, records their evaluation returns, and restores actors from them.
class RunCheckpoints {
public:
  /// Calls `on_failure` for a checkpoint that could not be written or copied to checkpoint.store;
  /// the run continues. Throws std::invalid_argument if that store cannot be used.
  RunCheckpoints(const RunContext& context, RunActors& actors,
                 std::function<void(const std::string&)> on_failure);

  /// Whether a checkpoint is due, by the clock, as one of the best evaluations or because a death
  /// interrupted the last one, and may begin. The first one of a new run is due after 15 seconds at
  /// the latest, so that a run whose head dies early can be resumed. Warns if one is late because
  /// the previous one is still being written.
  bool due();
  /// Whether a checkpoint, or a part of a failed one, is being written. Actors write one at a time.
  bool writing() const;
  /// Asks all actors to capture their state, which must not change meanwhile. Writing finishes
  /// while the run continues; a failure is logged. Throws ActorLost if a death prevents the
  /// capture.
  void begin(wire::RunState state);
  /// Whether an actor died while the last checkpoint was being written.
  bool interrupted() const { return interrupted_; }
  /// Captures the state and waits until the checkpoint is complete. Returns its path. First waits
  /// for the parts of a checkpoint that a death has interrupted.
  std::string write(wire::RunState state);
  void restart_clock() { last_ = Clock::now(); }

  const std::string& newest() const { return newest_; }   // newest complete one, or empty
  double age_seconds() const;                             // of newest(); 0 if there is none
  const std::string& problem() const { return problem_; } // of the last begin(); "" if none so far
  /// Returns the newest state that learners or checkpoints have written, or an empty path.
  std::filesystem::path learner_state() const;

  /// Adds this evaluation to the next checkpoint, which is due at once if it is one of the best.
  void note_evaluation(const Evaluated& evaluated);
  /// Writes the final evaluation to the last checkpoint, which has the evaluated parameters.
  void score_last(const RunResult& result);

  /// Logs messages about the copies in checkpoint.store. Returns how many copies have failed.
  std::int64_t report_copies();
  bool copying() const { return copies_ && !copies_->idle(); }
  /// Waits until the last checkpoint is copied; at the deadline the copy counts as failed.
  void finish_copies(std::chrono::seconds deadline);

  /// Whether an environment actor continues from its state in the resumed checkpoint.
  bool continues(std::int32_t environment_actor) const;
  /// Called after a takeover: the actors have continued since RunContext::resume_from.
  void succeed();
  void restore_servers(); // before the learners start, which take their parameters from the servers
  void restore(int environment_actors);

private:
  using Clock = std::chrono::steady_clock;
  void await_interrupted();
  void watch_parts();
  void capture(wire::RunState state);
  void on_failed(const std::string& problem, bool interrupted);
  void on_complete(const std::string& path);
  void restore_replay();
  void restore_environments(int environment_actors);
  std::filesystem::path folder() const { return context_.folder / "checkpoints"; }

  const RunContext& context_;
  RunActors& actors_;
  std::function<void(const std::string&)> on_failure_;
  std::unique_ptr<CheckpointCopies> copies_; // null without a store
  std::optional<PendingRequest> writing_;    // set while the run continues
  /// Actors, with their incarnations, that write parts of a failed checkpoint.
  std::map<std::pair<ActorKey, std::uint64_t>, PendingRequest> parts_;
  std::string newest_, problem_;
  Clock::time_point last_ = Clock::now(), written_ = Clock::now();
  bool wanted_ = false;      // due as one of the best evaluations
  bool interrupted_ = false; // due because a death interrupted the last one
  bool begun_ = false;       // a checkpoint has begun since the head started
  /// Mean return and updates of the newest evaluation, until a complete checkpoint has them, and as
  /// the last checkpoint captured them.
  std::optional<std::pair<double, std::int64_t>> unsaved_evaluation_, captured_evaluation_;
  /// Of this run's checkpoints and of evaluations that are due to be saved; read on demand.
  std::optional<std::vector<double>> best_returns_;
};

double mean(const std::vector<double>& values); // 0 if empty

} // namespace troupe::actors
