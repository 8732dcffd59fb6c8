#pragma once

#include <chrono>

#include "actors/protocol/head_record.pb.h"
#include "actors/run/companion.hpp"
#include "actors/run/distribution_reports.hpp"
#include "actors/run/evaluations.hpp"
#include "actors/run/lifecycle.hpp"
#include "actors/run/operator_requests.hpp"
#include "actors/run/progress_monitor.hpp"
#include "actors/run/run_actors.hpp"
#include "actors/run/run_checkpoints.hpp"
#include "actors/run/run_schedule.hpp"

namespace troupe::actors {

/// Leads a run: starts its actors, grants steps and updates, requests evaluations and checkpoints,
/// and ends the run. A blocking script on the caller's thread; every wait has a deadline.
///
/// It directs these parts: RunSchedule decides, RunActors talks to the actors, Lifecycle starts and
/// restarts them, and RunCheckpoints, Evaluations, OperatorRequests, Companion and ProgressMonitor
/// do what their names say.
class Head {
public:
  explicit Head(const RunContext& context);

  /// Blocks until the run ends. An error is returned in the result. Throws NothingToTakeOver if
  /// this head succeeds another one and none of its processes are left.
  RunResult run();

private:
  void start();
  void take_over();
  void await_processes();
  void write_record();
  void train_free();
  void train_in_rounds();
  void train_on_data();
  void finish(RunResult& result);
  void finish_copies();

  void begin_training();
  void end_training();
  void grant_learners();
  void grant_environments();
  void hold_learners();
  void wait_for_learners(std::int64_t most = kAllGranted);
  void share_steps();
  void pause();
  void unpause();
  void hold(bool paused);
  void begin_checkpoint();
  bool time_to_stop() const;
  template <class Body>
  void persist(const Body& body); // repeats `body` after each recovery
  void restart_lost();
  void recover();

  void maybe_evaluate();
  bool reached_goal(); // confirms it with the final episodes
  void maybe_checkpoint();
  wire::RunState state_now();
  void refresh();
  void on_update(const UpdatePtr& update, std::int64_t refused);
  void tell_control();

  const RunContext& context_;
  const RunConfig& config_;
  RunSchedule schedule_;
  ProgressMonitor monitor_;
  const Progress& progress_;
  RunActors actors_;
  RunCheckpoints checkpoints_;
  Lifecycle lifecycle_;
  Evaluations evaluations_;
  DistributionReports distributions_;
  OperatorRequests requests_;
  Companion companion_;
  bool started_ = false, ending_ = false;
  bool hopeful_ = false;  // an evaluation has reached the goal, which is not confirmed yet
  int confirmations_ = 0; // begun to confirm it
  bool held_ = false;     // an operator has paused the run
  std::int32_t took_over_ = 0, had_processes_ = 0;            // processes of the previous head
  std::shared_ptr<const wire::MetricsRecord> metrics_record_; // the newest
  std::string record_problem_;                                // problem of the last write_record()
};

template <class Body>
void Head::persist(const Body& body) {
  for (;;)
    try {
      return body();
    } catch (const ActorLost&) {
      recover();
    }
}

} // namespace troupe::actors
