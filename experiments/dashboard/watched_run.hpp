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

/// What the list of runs says of one.
struct RunSummary {
  std::string state; // running, finished, stopped, failed, killed, ended
  std::string experiment, task, agent;
  std::string group;    // equal for runs that differ in seed and name alone; "" while not read
  std::string headline; // the column of its result
  std::string problem;  // of its configuration; "" if it could be read
  std::string seed;
  double environment_steps = 0, updates = 0, training_seconds = 0;
  std::optional<double> result; // last value of the headline
  double target = 0;            // where it ends: environment steps, or updates; 0: not known
};

/// One run's folder, read as it changes. Each function locks; any thread.
class WatchedRun {
public:
  WatchedRun(std::string id, std::filesystem::path folder);

  const std::string& id() const { return id_; }
  const std::filesystem::path& folder() const { return folder_; }
  const std::string& sweep() const { return sweep_; } // its folder's id; "" if it is of none

  /// Reads what has changed of the state; the configuration only before `deadline`.
  RunSummary summary(RunMetrics::Deadline deadline);

  /// The resolved configuration. Throws ConfigError, as a std::invalid_argument.
  Experiment experiment();
  std::string config_text() const;

  /// Calls `use` with the run's metrics, after reading until `deadline`; past it, with what is
  /// known.
  template <typename Use>
  auto with_metrics(RunMetrics::Deadline deadline, Use use) {
    const std::lock_guard lock(mutex_);
    if (!metrics_) {
      metrics_.emplace(folder_ / "metrics.csv");
    }
    if (std::chrono::steady_clock::now() < deadline) {
      metrics_->read(deadline);
    }
    return use(*metrics_);
  }
  void forget_metrics();
  bool has_metrics();

  std::vector<LogLine> log(const LogFilter& filter);
  LogLine first_problem();

private:
  void read_experiment();
  void read_tail();
  void read_state();
  LogTail& read_log();

  const std::string id_;
  const std::filesystem::path folder_;
  const std::string sweep_;
  std::mutex mutex_;
  RunSummary summary_;
  std::optional<Experiment> experiment_;
  std::optional<RunMetrics> metrics_;
  std::optional<LogTail> log_;
  std::filesystem::file_time_type config_time_, lock_time_;
  std::uint64_t tail_size_ = 0; // of metrics.csv when its end was read
  bool final_ = false, held_ = false, config_read_ = false;
};

} // namespace troupe::experiments::dashboard
