#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "experiments/clock.hpp"

namespace troupe::experiments {

/// RUN/head.json: where the head of a run that goes on serves those who operate it. No secret is in
/// it.
struct HeadPlace {
  std::string host;    // its name
  std::string address; // to connect to, from every node
  int port = 0;
  int process = 0;     // on its host
  bool keys = false;   // the deployment's are needed to connect
  std::string started; // log_time()
};

/// Written while it lives.
class HeadFile {
public:
  /// Throws std::runtime_error naming the file and the reason.
  HeadFile(const std::filesystem::path& run, const HeadPlace& place);
  ~HeadFile();
  HeadFile(const HeadFile&) = delete;
  HeadFile& operator=(const HeadFile&) = delete;

private:
  std::filesystem::path path_;
};

/// Empty when there is none. Throws std::runtime_error naming the file when it is no such file.
std::optional<HeadPlace> read_head_file(const std::filesystem::path& run);

/// Whether a process works in the run's folder; unknown where the file system has no locks.
std::optional<bool> is_run_held(const std::filesystem::path& run);

/// A run whose head may be asked.
struct LiveRun {
  std::filesystem::path run;
  HeadPlace head;
};

/// `run`, or where that is empty the run below `runs` whose head began last and is alive. Throws
/// std::invalid_argument: it is no run; nobody works on it; its head is gone and left its file; it
/// is in one process, which serves nobody.
LiveRun find_live_run(const std::filesystem::path& run, const std::filesystem::path& runs);

/// The run that logs are read of: `run`, or the live one, or else the newest below `runs`.
std::filesystem::path find_run_with_logs(const std::filesystem::path& run,
                                         const std::filesystem::path& runs);

} // namespace troupe::experiments
