#pragma once

#include <deque>
#include <functional>
#include <optional>

#include "actors/run/run_actors.hpp"

namespace troupe::actors {

/// Requests evaluations from the evaluator, or from learners with their own data, and keeps the
/// results until the head takes them. All evaluations of a run start with the same seed, so that
/// curves are smooth.
class Evaluations {
public:
  /// Calls `on_end` with the progress at the beginning of an evaluation by begin() once it has a
  /// result or cannot have one. One that ends with its evaluator may begin again, once.
  Evaluations(const RunContext& context, RunActors& actors,
              std::function<void(const Progress& begun)> on_end)
      : context_(context), actors_(actors), on_end_(std::move(on_end)) {}

  /// Sends a request to the evaluator while training continues. next() returns the result. Returns
  /// false if the evaluator is not up.
  bool begin(const Progress& progress);
  /// Called when the evaluator died or was asked to leave.
  void cancel();
  bool running() const { return running_.has_value(); }
  void add(Evaluated result) { results_.push_back(std::move(result)); }
  std::optional<Evaluated> next();

  /// Evaluates parameters of at least this version and waits for the result. Throws as
  /// RunActors::ask(), and ActorLost if the evaluator waits to be restarted.
  Evaluated evaluate(int episodes, std::uint64_t minimum_version, const Progress& progress,
                     bool final);
  /// Evaluates all learners together on their own data.
  Evaluated evaluate_learners(const Progress& progress, bool final);

private:
  void lost();
  void add_played(const ProtoBytes& encoded, const Progress& begun);
  void end(Evaluated result, const Progress& begun);
  ProtoBytes question(int episodes, std::uint64_t minimum_version) const;

  const RunContext& context_;
  RunActors& actors_;
  std::function<void(const Progress& begun)> on_end_;
  std::optional<PendingRequest> running_;
  Progress begun_;    // at the beginning of the last evaluation by begin()
  bool lost_ = false; // the last evaluator was lost during it
  std::deque<Evaluated> results_;
};

} // namespace troupe::actors
