#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "experiments/dashboard/watched_run.hpp"

namespace troupe::experiments::dashboard {

using RunPtr = std::shared_ptr<WatchedRun>;

/// The runs in a folder: <name>/<time>, and those of sweeps in <sweep>/<part>/<name>/<time>. The id
/// of a run is its path relative to the folder. May be used from any thread.
class RunCatalogue {
public:
  static constexpr std::size_t kMostLoaded = 256; // runs whose metrics are kept
  static constexpr std::size_t kMostLogs = 16;    // runs whose logs are kept

  /// Throws std::invalid_argument if `runs` is not a folder.
  explicit RunCatalogue(const std::filesystem::path& runs);

  /// All runs, at most 10,000, newest first. Reads the disk at most once a second.
  std::vector<RunPtr> runs();

  /// Throws std::invalid_argument for an unknown id.
  RunPtr find(const std::string& id);

  const std::filesystem::path& folder() const { return folder_; }

  /// Marks a run's metrics as used. Only those of the kMostLoaded most recently used runs are kept.
  void used(const RunPtr& run);
  /// Likewise for a run's logs and kMostLogs.
  void used_log(const RunPtr& run);

private:
  void look();
  std::filesystem::path folder_;
  std::mutex mutex_;
  std::map<std::string, RunPtr> runs_; // by id
  std::vector<RunPtr> sorted_, recent_, recent_logs_;
  std::chrono::steady_clock::time_point looked_;
};

} // namespace troupe::experiments::dashboard
