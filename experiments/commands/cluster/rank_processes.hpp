#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/launchers/output_lines.hpp"

namespace troupe::experiments::commands {

/// What of the ranks' standard output is seen. Their standard error always is.
enum class RankOutput {
  rank0, // rank 0's, straight to the terminal; the others' goes nowhere
  all,   // all, line by line, after "[rank] "
  files, // into rank<r>.log of a folder
};

struct RankProcessesOptions {
  int ranks = 1;
  RankOutput output = RankOutput::rank0;
  std::filesystem::path log_folder;       // of RankOutput::files; made where it is missing
  std::chrono::milliseconds grace{5'000}; // for the others when one has failed, twice
};

/// One program, started `ranks` times, and watched as one: when a rank fails the others are given
/// `grace` to notice by themselves, then SIGTERM and again `grace`, then SIGKILL. SIGINT and
/// SIGTERM are passed on; a second one kills. The processes die with this one. One thread.
class RankProcesses {
public:
  struct Start {
    std::vector<std::string> words;       // the program's path first
    std::vector<std::string> environment; // "NAME=value", all of it
  };

  explicit RankProcesses(RankProcessesOptions options) : options_(std::move(options)) {}
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  /// `starts[r]` is rank r. Returns when all have ended: kDone; kAborted after a second signal.
  /// Throws std::runtime_error with the first cause when one failed or a signal ended the run.
  int run(const std::vector<Start>& starts);

private:
  /// A pipe that a rank writes into.
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
    std::string last_words; // the last line of standard error that is not empty
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
  int signals_ = -1; // signalfd
  std::optional<std::string> cause_;
  int stopped_by_ = 0; // the first signal
  bool aborted_ = false;
};

} // namespace troupe::experiments::commands
