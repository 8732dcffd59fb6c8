#include "actors/roles/learner_report.hpp"

#include "actors/protocol/process_time.hpp"

namespace troupe::actors {

wire::LearnerReport report_of(const LearnerState& state) {
  wire::LearnerReport made;
  made.set_replica(state.options.replica);
  made.set_updates(state.updates);
  made.set_rows(state.rows);
  made.mutable_metrics()->insert(state.metrics.begin(), state.metrics.end());
  made.mutable_seconds()->insert(state.watch.seconds().begin(), state.watch.seconds().end());
  made.set_problem(state.snapshot_problem);
  *made.mutable_process() = process_time();
  if (state.updates >= state.granted)
    made.set_waiting(state.granted == 0 ? "the head has granted no updates"
                                        : "has made all updates that the head granted");
  return made;
}

} // namespace troupe::actors
