#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/run/run_actors.hpp"

namespace troupe::actors {

/// Asks learner 0 and environment actors for histograms of parameters and actions, while training
/// continues, and passes them to the run's owner when all have answered. An actor that does not
/// answer is left out.
class DistributionReports {
public:
  DistributionReports(const RunContext& context, RunActors& actors)
      : context_(context), actors_(actors) {}

  /// At an evaluation or a checkpoint. Does nothing while the last ones are under way, without
  /// an owner that wants them, and at more and more of the later calls: a long run writes about as
  /// many as a short one.
  void begin(const Progress& progress);

  /// Whether call number `call`, from 0, counts: all of the first 64, every second of the next 64,
  /// every fourth of the next 128, …. Pure.
  static bool counts(std::int64_t call);

private:
  void ask(const caf::actor& who);
  void add(const ProtoBytes& encoded);
  void finish();

  const RunContext& context_;
  RunActors& actors_;
  std::int64_t calls_ = 0;
  std::size_t missing_ = 0; // answers
  Distributions made_;
  std::vector<PendingRequest> requests_;
};

} // namespace troupe::actors
