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

/// The folder of one run and the lock on it: config.textproto, log.txt, metrics.csv,
/// events.out.tfevents.…, checkpoints/<updates>/, videos/, report.html. One process holds it at a
/// time. Every other function of a run writes below path() only.
class RunFolder {
public:
  /// Makes <runs>/<name>/<UTC time>, with "-2", "-3", … behind it when that exists; never touches
  /// an existing one. Throws std::runtime_error naming the folder and the reason.
  static RunFolder create(const std::filesystem::path& runs, const std::string& name, UtcTime now,
                          const std::string& config_text);

  /// Takes the lock of an existing run. Throws std::invalid_argument when it is no run's folder,
  /// std::runtime_error when another process works on it.
  static RunFolder open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }

private:
  RunFolder(std::filesystem::path path, FolderLock lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  FolderLock lock_;
};

/// A checkpoint is complete when it has its manifest.json, which is written last.
struct CheckpointFolder {
  std::int64_t updates = 0;
  std::filesystem::path path;
  std::optional<double> evaluation_return = {}; // of find_best_checkpoint()
};

/// The complete checkpoints of a run, oldest first.
std::vector<CheckpointFolder> complete_checkpoints(const std::filesystem::path& run);

/// The checkpoint of `updates`, or the latest. Throws std::invalid_argument naming the existing
/// ones.
CheckpointFolder find_checkpoint(const std::filesystem::path& run,
                                 std::optional<std::int64_t> updates = {});

/// The one of the greatest evaluation return. Throws std::invalid_argument when none has one.
CheckpointFolder find_best_checkpoint(const std::filesystem::path& run);

/// The newest checkpoint for which `check` does not throw; `damaged` gets the errors of newer ones.
/// Throws std::invalid_argument if there is none, std::runtime_error if all are damaged.
CheckpointFolder
find_sound_checkpoint(const std::filesystem::path& run,
                      const std::function<void(const std::filesystem::path&)>& check,
                      const std::function<void(const std::string&)>& damaged);

/// The Chrome trace of `troupe timeline` that was written last. Throws std::runtime_error if there
/// is none.
std::filesystem::path newest_timeline(const std::filesystem::path& run);

/// Throws std::invalid_argument if `path` has no config.textproto, with what it is instead.
void check_is_run(const std::filesystem::path& path);

/// Writes a small file whole or not at all. Throws std::runtime_error naming path and reason.
void write_text(const std::filesystem::path& path, const std::string& text);

} // namespace troupe::experiments
