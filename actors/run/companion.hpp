#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "actors/run/metrics_actor.hpp"
#include "actors/run/run_actors.hpp"

namespace troupe::actors {

/// Connects the actor that an embedding program adds to a run (RunConfig::companion): sends it the
/// episodes that ended, and passes the task options in its answers to the environment actors. Does
/// nothing in a run without such an actor. Used only by the head's thread.
class Companion {
public:
  Companion(const RunContext& context, RunActors& actors);
  ~Companion();
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

  void start();
  /// Sends a report and waits for the answer.
  void ask(const Progress& progress);
  /// Keeps the update's episodes for the next report.
  void add(const Update& update);
  /// Sends a report if there are new episodes and the previous report was answered. Throws
  /// RunFailed naming the companion if it died, did not answer, or chose options that the task
  /// refuses.
  void serve(const Progress& progress);
  /// Like serve(), for a deterministic run: sorts the episodes, so that their order does not depend
  /// on timing, and waits for the answer.
  void serve_and_wait(const Progress& progress);

private:
  ProtoBytes report(const Progress& progress);
  void take(const ProtoBytes& answer);

  const RunContext& context_;
  RunActors& actors_;
  caf::actor actor_;                                      // null if the run has no companion
  std::vector<std::pair<double, std::int64_t>> episodes_; // not yet reported
  std::optional<PendingRequest> request_;
  std::optional<ProtoBytes> answer_;
  caf::error problem_;
};

} // namespace troupe::actors
