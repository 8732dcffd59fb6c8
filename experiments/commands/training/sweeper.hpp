#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "experiments/commands/running/run_process.hpp"
#include "experiments/commands/running/wait_for_signal.hpp"
#include "experiments/sweeps/sweep.hpp"

namespace troupe::experiments::commands {

struct SweeperOptions {
  std::string name;
  std::filesystem::path folder; // folder of the sweep; must exist and be locked
  int jobs = 1;                 // runs at the same time
  int attempts = 1;             // attempts for each run
  bool processes = false;       // whether each run gets --processes
  std::FILE* screen = stdout;   // gets a line when a run begins or ends
};

/// Executes the runs of a sweep, `jobs` at a time, each in its own process. Skips finished runs,
/// resumes unfinished ones from their latest checkpoint once no other process works on them, and
/// retries failed ones while they have attempts left. Writes sweep.csv, curves.csv and report.html
/// after each run; if that fails, as on a full disk, the runs go on and it tries again after the
/// next one. Use from one thread, which must be the process's only one when the sweeper is created:
/// SIGINT and SIGTERM are blocked from then on, also in threads that start later, until the sweeper
/// is destroyed.
class Sweeper {
public:
  /// Reads the state of each run from the folder. Throws the exceptions of find_state().
  Sweeper(SweeperOptions options, std::vector<SweepRun> runs);
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  const std::vector<SweepRun>& runs() const { return runs_; }
  const std::vector<RunState>& states() const { return states_; }

  /// Returns when all runs have ended, or after SIGINT or SIGTERM once the current runs have
  /// written checkpoints. Returns false immediately after a second signal. Throws
  /// std::runtime_error if the results cannot be written in the end; after any other exception,
  /// too, the running ones have written checkpoints.
  bool run();

  /// Whether a signal ended run().
  bool stopped() const { return stopped_; }

  /// "3 of 18 runs failed; walker_walk_seed=1: …"; empty if none failed.
  std::string failure() const;

private:
  struct Running {
    std::size_t run = 0;
    std::uintmax_t errors_before = 0; // size of errors.txt, which earlier attempts wrote
    std::unique_ptr<RunProcess> process;
  };

  std::filesystem::path part(std::size_t i) const { return options_.folder / runs_[i].name; }
  void say(std::size_t i, const std::string& what) const;
  bool may_start() const;
  bool is_held(std::size_t i);
  void start(std::size_t i);
  bool run_all();
  std::optional<std::vector<Running>> wait();
  void stop();
  void collect(const Running& ended);
  void note_failure(std::size_t i, const std::string& why);
  bool keep_result(std::size_t i);
  void write_results();
  void try_to_write_results();

  EndSignals signals_; // created first, destroyed last
  SweeperOptions options_;
  std::vector<SweepRun> runs_;
  std::vector<RunState> states_;
  std::vector<int> failures_;
  std::deque<std::size_t> waiting_;
  std::set<std::size_t> held_; // waiting runs that were said to be held
  std::vector<Running> running_;
  std::map<std::size_t, std::string> unkept_; // results that are not on the disk yet
  std::string unwritten_;                     // why the last results could not be written
  bool stopped_ = false;
};

} // namespace troupe::experiments::commands
