#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/run/checkpoint_copies.hpp"
#include "actors/run/run_actors.hpp"

namespace troupe::actors {

/// Writes the run's checkpoints, scores them by evaluations, and restores actors from them.
class RunCheckpoints {
public:
  /// `on_failure` hears of a checkpoint that could not be written, or not be copied to
  /// checkpoint.store, while the run continues. Throws std::invalid_argument if that store cannot
  /// be used.
  RunCheckpoints(const RunContext& context, RunActors& actors,
                 std::function<void(const std::string&)> on_failure);

  /// One is due, by the clock or as one of the best evaluations, and may begin. The first of a new
  /// run is due after 15 seconds at the latest, so that a run whose head dies early can be resumed.
  /// Warns when one is late because the one before is still being written.
  bool due();
  bool writing() const { return writing_.has_value(); }
  /// Has all actors capture their state, which must not change meanwhile, then lets the writing
  /// finish while the run continues; a failure is logged.
  void begin(wire::RunState state);
  /// Captures and waits until the checkpoint is complete.
  std::string write(wire::RunState state);
  void restart_clock() { last_ = Clock::now(); }

  const std::string& newest() const { return newest_; }   // complete; or empty
  double age_seconds() const;                             // of newest(), 0 without one
  const std::string& problem() const { return problem_; } // of the last begin(); "": none so far
  /// The newest state that learners or checkpoints have written; or empty.
  std::filesystem::path learner_state() const;

  /// The next checkpoint holds this evaluation, and is due at once if it is one of the best.
  void note_evaluation(const Evaluated& evaluated);
  /// Writes the final evaluation to the last checkpoint, which has the evaluated parameters.
  void score_last(const RunResult& result);

  /// Logs what happened to the copies in checkpoint.store; returns how many have failed.
  std::int64_t report_copies();
  bool copying() const { return copies_ && !copies_->idle(); }
  /// Waits until the last checkpoint is there; at the deadline it counts as failed.
  void finish_copies(std::chrono::seconds deadline);

  /// An environment actor continues where one of the resumed checkpoint stopped.
  bool continues(std::int32_t environment_actor) const;
  /// The actors have gone on since RunContext::resume_from.
  void succeed();
  void restore_servers(); // before the learners start, which take their parameters from them
  void restore(int environment_actors);

private:
  using Clock = std::chrono::steady_clock;
  void capture(wire::RunState state);
  void on_written(const std::string& path, const std::string& problem);
  void on_complete(const std::string& path);
  void restore_replay();
  void restore_environments(int environment_actors);
  std::filesystem::path folder() const { return context_.folder / "checkpoints"; }

  const RunContext& context_;
  RunActors& actors_;
  std::function<void(const std::string&)> on_failure_;
  std::unique_ptr<CheckpointCopies> copies_; // with a store
  std::optional<PendingRequest> writing_;    // while the run continues
  std::string newest_, problem_;
  Clock::time_point last_ = Clock::now(), written_ = Clock::now();
  bool wanted_ = false; // for one of the best evaluations
  bool begun_ = false;  // one, since the head started
  std::optional<std::pair<double, std::int64_t>> unsaved_evaluation_; // mean return, updates
  std::optional<std::vector<double>> best_returns_; // of this run's checkpoints; read when needed
};

double mean(const std::vector<double>& values); // 0 of none

} // namespace troupe::actors
