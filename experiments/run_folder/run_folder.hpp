#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/run_folder/clock.hpp"
#include "experiments/run_folder/folder_lock.hpp"

namespace troupe::experiments {

/// The folder of one run and the lock on it. It contains config.textproto, log.txt, metrics.csv,
/// events.out.tfevents.…, checkpoints/<updates>/, videos/ and report.html. Only one process holds
/// it at a time. All other code of a run writes only below path().
class RunFolder {
public:
  /// Creates <runs>/<name>/<UTC time>, with "-2", "-3", … appended if that exists. Never touches an
  /// existing folder. Throws std::runtime_error with the folder and the reason.
  static RunFolder create(const std::filesystem::path& runs, const std::string& name, UtcTime now,
                          const std::string& config_text);

  /// Locks the folder of an existing run. Throws std::invalid_argument if it is not a run's folder,
  /// and std::runtime_error if another process works on it.
  static RunFolder open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }

private:
  RunFolder(std::filesystem::path path, FolderLock lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  FolderLock lock_;
};

/// The runs directly in a folder, such as <runs>/<name>, sorted. Names that begin with the start
/// time sort from the oldest run to the newest.
std::vector<std::filesystem::path> runs_in(const std::filesystem::path& folder);

/// A checkpoint. It is complete if it has its manifest.json, which is written last.
struct CheckpointFolder {
  std::int64_t updates = 0;
  std::filesystem::path path;
  std::optional<double> evaluation_return = {}; // set by find_best_checkpoint()
};

/// The complete checkpoints of a run, oldest first.
std::vector<CheckpointFolder> complete_checkpoints(const std::filesystem::path& run);

/// The checkpoint after `updates` updates, or the latest. Throws std::invalid_argument that lists
/// the existing ones.
CheckpointFolder find_checkpoint(const std::filesystem::path& run,
                                 std::optional<std::int64_t> updates = {});

/// The checkpoint with the greatest evaluation return. Throws std::invalid_argument if none has
/// one.
CheckpointFolder find_best_checkpoint(const std::filesystem::path& run);

/// The newest checkpoint for which `check` does not throw. `damaged` is called with the errors of
/// newer ones. Throws std::invalid_argument if there is no checkpoint, and std::runtime_error if
/// all are damaged.
CheckpointFolder
find_sound_checkpoint(const std::filesystem::path& run,
                      const std::function<void(const std::filesystem::path&)>& check,
                      const std::function<void(const std::string&)>& damaged);

/// The most recent Chrome trace that `troupe timeline` wrote. Throws std::runtime_error if there is
/// none.
std::filesystem::path newest_timeline(const std::filesystem::path& run);

/// Throws std::invalid_argument that says what `path` is instead if it has no config.textproto.
void check_is_run(const std::filesystem::path& path);

/// The first free name of config-1.textproto, config-2.textproto, … in a run, for a
/// config.textproto that is about to be replaced.
std::filesystem::path name_for_former_config(const std::filesystem::path& run);

/// Writes a small file completely or not at all. Throws std::runtime_error with path and reason.
void write_text(const std::filesystem::path& path, const std::string& text);

} // namespace troupe::experiments
