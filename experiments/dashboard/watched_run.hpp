#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/experiment.pb.h"
#include "experiments/dashboard/log_tail.hpp"
#include "experiments/dashboard/run_metrics.hpp"
#include "experiments/dashboard/run_operator.hpp"

namespace troupe::experiments::dashboard {

/// The entry of a run in the list of runs.
struct RunSummary {
  std::string state; // running, finished, stopped, failed, killed
  std::string experiment, task, agent;
  std::string group;    // equal for runs that differ only in seed and name; "" until read
  std::string headline; // name of the column that holds the result
  std::string problem;  // problem with its configuration; "" if it could be read
  std::string seed;
  double environment_steps = 0, updates = 0, training_seconds = 0;
  std::optional<double> result; // last value of the headline column
  double target = 0;            // length in environment steps or updates; 0: unknown
};

/// The folder of one run, read as it changes. Every function locks, so any thread may call it.
class WatchedRun {
public:
  WatchedRun(std::string id, std::filesystem::path folder);

  const std::string& id() const { return id_; }
  const std::filesystem::path& folder() const { return folder_; }
  /// The id of the sweep's folder; "" if the run belongs to no sweep.
  const std::string& sweep() const { return sweep_; }

  /// Reads what has changed of the run's state; reads the configuration, and rows of metrics.csv
  /// far before its end, only before `deadline`.
  RunSummary summary(RunMetrics::Deadline deadline);

  /// The resolved configuration. Throws ConfigError (a std::invalid_argument).
  Experiment experiment();
  std::string config_text() const;

  /// Reads metrics until `deadline`, then calls `use` with the run's metrics as far as they were
  /// read.
  template <typename Use>
  auto with_metrics(RunMetrics::Deadline deadline, Use use) {
    const std::lock_guard lock(mutex_);
    if (!metrics_) {
      metrics_.emplace(folder_ / "metrics.csv", forgotten_version_);
    }
    if (std::chrono::steady_clock::now() < deadline) {
      metrics_->read(deadline);
    }
    return use(*metrics_);
  }
  void forget_metrics();

  std::vector<LogLine> log(const LogFilter& filter);
  void forget_log();
  LogLine first_problem();

private:
  void read_experiment();
  void read_tail(RunMetrics::Deadline deadline);
  void read_state();

  const std::string id_;
  const std::filesystem::path folder_;
  const std::string sweep_;
  std::mutex mutex_;
  RunSummary summary_;
  std::optional<Experiment> experiment_;
  std::optional<RunMetrics> metrics_;
  /// Clients have no later version of forgotten metrics.
  std::uint64_t forgotten_version_ = RunMetrics::kFirstVersion;
  std::optional<LogTail> log_;
  FirstProblem first_problem_;
  std::filesystem::file_time_type config_time_, lock_time_;
  /// Offsets in metrics.csv. The last result is to be searched in the rows from `begin` to `end`,
  /// backwards; the rows up to `read` have been read or are in this part.
  struct Search {
    std::uint64_t begin = 0, end = 0, read = 0;
  };
  Search search_;
  std::uint64_t tail_size_ = 0; // size of metrics.csv when its end was last read
  bool final_ = false, held_ = false, config_read_ = false;
};

} // namespace troupe::experiments::dashboard
