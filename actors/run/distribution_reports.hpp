#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/run/run_actors.hpp"

namespace troupe::actors {

/// Requests histograms of parameters and actions from learner 0 and environment actors while
/// training continues, and passes them to the run's owner when all have answered. Leaves out an
/// actor that does not answer.
class DistributionReports {
public:
  DistributionReports(const RunContext& context, RunActors& actors)
      : context_(context), actors_(actors) {}

  /// Called at each evaluation and checkpoint. Does nothing while the last requests are pending or
  /// if the owner has no callback for histograms. Skips more and more of the later calls, so that a
  /// long run writes about as many reports as a short one.
  void begin(const Progress& progress);

  /// Whether call number `call`, from 0, is used: all of the first 64, every second of the next 64,
  /// every fourth of the next 128, …. Pure function.
  static bool counts(std::int64_t call);

private:
  void ask(const caf::actor& who);
  void add(const ProtoBytes& encoded);
  void finish();

  const RunContext& context_;
  RunActors& actors_;
  std::int64_t calls_ = 0;
  std::size_t missing_ = 0; // answers not received yet
  Distributions made_;
  std::vector<PendingRequest> requests_;
};

} // namespace troupe::actors
