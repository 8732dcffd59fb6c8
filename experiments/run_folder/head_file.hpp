#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/run_folder/clock.hpp"

namespace troupe::experiments {

/// Contents of RUN/head.json: where commands reach the head of a live run. Contains no secret.
struct HeadPlace {
  std::string host;    // name of the head's host
  std::string address; // address to connect to, from every node
  int port = 0;
  int process = 0;     // process id on the host
  bool keys = false;   // whether connecting requires the cluster keys
  std::string started; // formatted by log_time()
};

/// The file exists from the first successful write() until this object is destroyed.
class HeadFile {
public:
  HeadFile(const std::filesystem::path& run, const HeadPlace& place);
  ~HeadFile();
  HeadFile(const HeadFile&) = delete;
  HeadFile& operator=(const HeadFile&) = delete;

  /// Writes the file if it does not exist yet. Throws std::runtime_error with the file and the
  /// reason.
  void write();

private:
  std::filesystem::path path_;
  std::string text_; // empty once the file is written
};

/// Returns nothing if there is no such file. Throws std::runtime_error that names a malformed file.
std::optional<HeadPlace> read_head_file(const std::filesystem::path& run);

/// Whether a process works in the run's folder; nothing if the file system has no locks.
std::optional<bool> is_run_held(const std::filesystem::path& run);

/// A run whose head can be reached.
struct LiveRun {
  std::filesystem::path run;
  HeadPlace head;
};

/// Finds `run` or, if that is empty, the newest live run below `runs`. Throws std::invalid_argument
/// if it is not a run, no process works on it, its head was killed, or it cannot be operated.
LiveRun find_live_run(const std::filesystem::path& run, const std::filesystem::path& runs);

/// The run folders in a folder for runs: <name>/<time>.
std::vector<std::filesystem::path> runs_below(const std::filesystem::path& runs);

/// Returns `run` or, if that is empty, the newest run below `runs`, according to the time in the
/// folder's name. Throws std::invalid_argument if `run` is not a run or there is none.
std::filesystem::path find_run(const std::filesystem::path& run, const std::filesystem::path& runs);

/// The run whose logs to read: `run` if given, otherwise the live run, otherwise the newest below
/// `runs`.
std::filesystem::path find_run_with_logs(const std::filesystem::path& run,
                                         const std::filesystem::path& runs);

} // namespace troupe::experiments
