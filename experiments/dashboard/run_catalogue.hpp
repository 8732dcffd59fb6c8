#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "experiments/dashboard/watched_run.hpp"

namespace troupe::experiments::dashboard {

using RunPtr = std::shared_ptr<WatchedRun>;

/// The runs below a folder, <name>/<time> and those of sweeps, <sweep>/<part>/<name>/<time>. A
/// run's id is its path below the folder. Any thread.
class RunCatalogue {
public:
  /// Throws std::invalid_argument if `runs` is no folder.
  explicit RunCatalogue(const std::filesystem::path& runs);

  /// All of them, the newest first; looks at the disk at most once a second. At most 10,000.
  std::vector<RunPtr> runs();

  /// Throws std::invalid_argument for an id that is not in the list.
  RunPtr find(const std::string& id);

  const std::filesystem::path& folder() const { return folder_; }

  /// Marks a run's metrics as used; those of the least recently used above 256 are dropped.
  void used(const RunPtr& run);

private:
  void look();
  std::filesystem::path folder_;
  std::mutex mutex_;
  std::map<std::string, RunPtr> runs_; // by id
  std::vector<RunPtr> sorted_, recent_;
  std::chrono::steady_clock::time_point looked_;
};

} // namespace troupe::experiments::dashboard
