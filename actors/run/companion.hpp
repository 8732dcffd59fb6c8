#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "actors/run/metrics_actor.hpp"
#include "actors/run/run_actors.hpp"

namespace troupe::actors {

/// Connects the actor that an embedding program adds to a run (RunConfig::companion) with the rest:
/// gives it the episodes that ended and gives environment actors the options that it answers. Does
/// nothing in a run without one. For the head's thread.
class Companion {
public:
  Companion(const RunContext& context, RunActors& actors);
  ~Companion();
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

  /// Starts the actor.
  void start();
  /// Reports, and waits for the answer.
  void ask(const Progress& progress);
  /// Keeps the episodes for the next report.
  void add(const Update& update);
  /// Reports the episodes so far, if there are any and the last report was answered. Throws
  /// RunFailed naming the companion if it died, did not answer, or gave options that the task
  /// refuses.
  void serve(const Progress& progress);
  /// The same, in a deterministic run: in an order that does not depend on timing, and waits.
  void serve_and_wait(const Progress& progress);

private:
  ProtoBytes report(const Progress& progress);
  void take(const ProtoBytes& answer);

  const RunContext& context_;
  RunActors& actors_;
  caf::actor actor_;                                      // null without one
  std::vector<std::pair<double, std::int64_t>> episodes_; // not yet reported
  std::optional<PendingRequest> request_;
  std::optional<ProtoBytes> answer_;
  caf::error problem_;
};

} // namespace troupe::actors
