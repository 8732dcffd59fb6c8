#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/run_folder/clock.hpp"

namespace troupe::experiments {

/// RUN/head.json: the operating address of a live run's head. Contains no secret.
struct HeadPlace {
  std::string host;    // its name
  std::string address; // to connect to, from every node
  int port = 0;
  int process = 0;     // on its host
  bool keys = false;   // the deployment's are needed to connect
  std::string started; // log_time()
};

/// Exists while this object does, from the first write() that succeeds.
class HeadFile {
public:
  HeadFile(const std::filesystem::path& run, const HeadPlace& place);
  ~HeadFile();
  HeadFile(const HeadFile&) = delete;
  HeadFile& operator=(const HeadFile&) = delete;

  /// Writes it if it is not there yet. Throws std::runtime_error naming the file and the reason.
  void write();

private:
  std::filesystem::path path_;
  std::string text_; // empty: it is there
};

/// Empty if there is none. Throws std::runtime_error naming the file if it is malformed.
std::optional<HeadPlace> read_head_file(const std::filesystem::path& run);

/// Whether a process works in the run's folder; unknown where the file system has no locks.
std::optional<bool> is_run_held(const std::filesystem::path& run);

/// A run whose head may be asked.
struct LiveRun {
  std::filesystem::path run;
  HeadPlace head;
};

/// Finds `run` or, if that is empty, the newest live run below `runs`. Throws std::invalid_argument
/// if it is not a run, no process works on it, its head was killed, or it cannot be operated.
LiveRun find_live_run(const std::filesystem::path& run, const std::filesystem::path& runs);

/// Runs below a folder for runs: <name>/<time>.
std::vector<std::filesystem::path> runs_below(const std::filesystem::path& runs);

/// `run` or, if that is empty, the newest below `runs`, by the time that its folder is named after.
/// Throws std::invalid_argument if it is no run or there is none.
std::filesystem::path find_run(const std::filesystem::path& run, const std::filesystem::path& runs);

/// The run whose logs to read: `run`, or the live one, or else the newest below `runs`.
std::filesystem::path find_run_with_logs(const std::filesystem::path& run,
                                         const std::filesystem::path& runs);

} // namespace troupe::experiments
