#pragma once

#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "experiments/commands/run_process.hpp"
#include "experiments/sweep.hpp"

namespace troupe::experiments::commands {

class SignalsToPoll;

struct SweeperOptions {
  std::string name;
  std::filesystem::path folder; // of the sweep; there, and locked
  int jobs = 1;                 // runs at a time
  int attempts = 1;             // for each run
  bool processes = false;       // --processes of each run
  std::FILE* screen = stdout;   // a line when a run begins and ends
};

/// The runs of a sweep, `jobs` at a time, each in a process of its own: those that are done are
/// left alone, those that were begun go on from their latest checkpoint, one that fails does so too
/// while it has attempts left. After each of them sweep.csv, curves.csv and report.html are
/// written. One thread, which was the only one when it began.
class Sweeper {
public:
  /// Looks at what lies in the folder. Throws as find_state() does.
  Sweeper(SweeperOptions options, std::vector<SweepRun> runs);

  const std::vector<SweepRun>& runs() const { return runs_; }
  const std::vector<RunState>& states() const { return states_; }

  /// Returns when all have ended, or, after SIGINT or SIGTERM, those that ran, with a checkpoint
  /// each; false: at once, by a second signal.
  bool run();

  /// Was it by a signal that run() returned?
  bool stopped() const { return stopped_; }

  /// "3 of 18 runs failed; walker_walk_seed=1: …", empty when none did.
  std::string failure() const;

private:
  struct Running {
    std::size_t run = 0;
    std::unique_ptr<RunProcess> process;
  };

  std::filesystem::path part(std::size_t i) const { return options_.folder / runs_[i].name; }
  void say(std::size_t i, const std::string& what) const;
  void start(std::size_t i);
  bool wait(const SignalsToPoll& signals);
  void stop();
  void collect(const Running& ended);
  bool keep_result(std::size_t i);
  void write_results() const;

  SweeperOptions options_;
  std::vector<SweepRun> runs_;
  std::vector<RunState> states_;
  std::vector<int> failures_;
  std::deque<std::size_t> waiting_;
  std::vector<Running> running_;
  bool stopped_ = false;
};

} // namespace troupe::experiments::commands
