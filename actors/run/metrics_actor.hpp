#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "actors/protocol/head_record.pb.h"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages.pb.h"
#include "actors/protocol/run_config.hpp"
#include "replay/service/spill_watch.hpp"

namespace troupe::actors {

/// Adds up reports; pure. Reports contain totals since their actor's start, so a duplicate or late
/// report changes nothing, and a dead actor's totals stay in the sum.
class MetricsSum {
public:
  /// `before`: the counters of a resumed run, from which totals continue. `own`: the processor time
  /// that the head's process has used so far, which does not count.
  explicit MetricsSum(const wire::RunState& before, const wire::ProcessTime& own = {});

  /// add() and restore() throw std::invalid_argument naming a counter that is out of range
  /// (counters.hpp). A refused report changes nothing. Returns the episodes that ended, as (return,
  /// length in environment steps).
  std::vector<std::pair<double, std::int64_t>> add(const wire::EnvironmentReport& report);
  void add(const wire::LearnerReport& report);
  void add(const wire::ShardReport& report);
  void add(const wire::ParameterServerReport& report);
  void add(const wire::ProcessTime& time);

  /// Returns the progress. `elapsed_seconds` is the time since the last call and determines the
  /// rates; it counts as training time if `training` is set.
  Progress progress(double elapsed_seconds, bool training);
  wire::RunState state(const Progress& progress) const;
  /// Returns the record with which the next head continues from the same counters.
  wire::MetricsRecord record() const;
  /// Called at the start with the sums of the previous head.
  void restore(const wire::MetricsRecord& record);
  /// Returns which actors make no progress and what they wait for, one line for equal actors of a
  /// role.
  std::vector<std::string> waits() const;
  /// The actor died or left. Its work still counts, but not the age of its parameters.
  void gone(int environment_actor);

private:
  /// Totals over all incarnations of parameter servers and their optimizers.
  struct ServerTotals {
    std::int64_t applied = 0, dropped = 0, staleness_sum = 0, staleness_most = 0;
    double rate_scale_sum = 0;
  };
  void add_servers(Progress& now);
  /// Counters at one moment, recorded twice a second.
  struct Reached {
    double seconds = 0; // on clock_
    std::int64_t environment_steps = 0, updates = 0, samples = 0, frames = 0;
  };
  void add_rates(Progress& now, double elapsed_seconds);
  /// `newest`: the incarnation of each living environment actor.
  void add_times(Progress& now, const std::map<int, std::uint64_t>& newest);

  wire::RunState before_;
  std::map<std::pair<int, std::uint64_t>, wire::EnvironmentReport>
      environments_;   // by actor and incarnation
  std::set<int> away_; // environment actors
  std::map<int, wire::LearnerReport> learners_;
  std::map<int, wire::ShardReport> shards_;
  std::map<std::pair<int, std::uint64_t>, wire::ParameterServerReport>
      servers_; // by shard and incarnation
  ServerTotals means_from_;
  double staleness_mean_ = 0;
  double rate_scale_mean_ = 1;
  std::vector<double> last_returns_;
  std::int64_t episodes_ = 0;
  std::int64_t failed_spills_ = 0;
  wire::ProcessTime own_;
  std::map<std::uint64_t, double> processor_seconds_; // by process
  double training_seconds_ = 0;
  double clock_ = 0;            // seconds
  double since_rates_ = 0;      // seconds
  std::deque<Reached> reached_; // counters over the period of the rates; never empty
  Progress rates_;
  std::shared_ptr<const Progress::ActorTimes> actor_times_;
};

/// A report of the metrics actor to the run.
struct Update {
  std::uint64_t number = 0; // increases; an update that arrives after a later one is outdated
  Progress progress;
  wire::RunState state;
  std::vector<std::pair<double, std::int64_t>>
      episodes; // that ended since the last update: return, length in environment steps
  std::vector<std::string> warnings;                      // since the last update, for the log
  std::shared_ptr<const wire::MetricsRecord> record = {}; // set every two seconds
};

struct MetricsState {
  static const char* name;
  struct Watched {
    Role role;
    std::int32_t index;
    caf::actor who;
    bool asked = false;                               // an answer is outstanding
    std::chrono::steady_clock::time_point since = {}; // time of that request
    bool again = false; // an actor joined after the request: only the next report is new enough
  };
  caf::actor listener;
  std::unique_ptr<MetricsSum> sum;
  std::vector<Watched> watched;
  caf::actor evaluator;         // null: none
  bool evaluator_asked = false; // an answer is outstanding
  std::size_t next = 0;         // index of the actor to poll next, modulo their number
  std::vector<std::pair<double, std::int64_t>> episodes;
  std::vector<std::string> warnings;
  std::map<std::int32_t, replay::SpillWatch> spills;           // by shard
  std::map<std::string, std::string> problems;                 // by actor; already logged
  std::vector<caf::typed_response_promise<UpdatePtr>> waiting; // for all actors to answer
  std::uint64_t updates = 0;                                   // number sent
  std::uint64_t ticks = 0;
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
  bool training = false;
  bool counts_items = false;
};

/// `counts_items`: reports new items in replay at once, because updates wait for them.
MetricsActor::behavior_type metrics_actor(MetricsActor::stateful_pointer<MetricsState> self,
                                          caf::actor listener, ProtoBytes before,
                                          bool counts_items);

} // namespace troupe::actors
