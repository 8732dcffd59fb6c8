#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/commands/running/wait_for_signal.hpp"
#include "experiments/launchers/output_lines.hpp"

namespace troupe::experiments::commands {

/// Where the standard output of the ranks goes. Their standard error is always shown.
enum class RankOutput {
  rank0, // rank 0 writes to the terminal; the others' output is discarded
  all,   // every line of every rank, prefixed with "[rank] "
  files, // each rank writes rank<r>.log in a folder
};

struct RankProcessesOptions {
  int ranks = 1;
  RankOutput output = RankOutput::rank0;
  std::filesystem::path log_folder;       // for RankOutput::files; created if missing
  std::chrono::milliseconds grace{5'000}; // before SIGTERM, and again before SIGKILL
};

/// Starts one program as `ranks` processes and supervises them as a unit. When a rank fails, the
/// others have `grace` to notice by themselves; then they get SIGTERM, and after another `grace`
/// SIGKILL. SIGINT and SIGTERM are blocked and passed on to the ranks; a second signal kills them.
/// The ranks die with this process. Use from one thread.
class RankProcesses {
public:
  struct Start {
    std::vector<std::string> words;       // starts with the program's path
    std::vector<std::string> environment; // the complete environment, as "NAME=value"
  };

  explicit RankProcesses(RankProcessesOptions options) : options_(std::move(options)) {}
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  /// Runs one process for each element; `starts[r]` describes rank r. Returns when all have ended:
  /// kDone, or kAborted after a second signal. Throws std::runtime_error with the first cause if a
  /// rank failed or a signal ended the run.
  int run(const std::vector<Start>& starts);

private:
  /// A pipe that a rank writes to.
  struct Stream {
    int descriptor = -1;
    std::FILE* to = nullptr;
    std::string prefix;
    launchers::OutputLines lines;
  };
  struct Rank {
    pid_t process = -1;
    int ended = -1; // pidfd
    Stream out, error;
    std::string last_words; // the last non-empty line of standard error
    bool running = false;
  };

  void start(int rank, const Start& what);
  bool wait(std::chrono::milliseconds limit);
  static void show(Rank& rank, const Stream& stream, std::string_view line);
  static void drain(Rank& rank, Stream& stream, bool to_the_end);
  void collect(int rank);
  void signal_all(int signal) const;
  bool any_running() const;
  void handle_signal();

  RankProcessesOptions options_;
  std::vector<Rank> ranks_;
  EndSignals signals_;
  std::optional<std::string> cause_;
  int stopped_by_ = 0; // the first signal received
  bool aborted_ = false;
};

} // namespace troupe::experiments::commands
