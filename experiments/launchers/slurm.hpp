#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/launchers/child_processes.hpp"
#include "experiments/launchers/launcher.hpp"

namespace troupe::experiments::launchers {

/// Expands a Slurm node list such as "gpu1,node[01-03,7]". Throws std::invalid_argument for
/// malformed text and for more than 65536 names.
std::vector<std::string> parse_node_list(std::string_view list);

/// The nodes of this process's allocation (SLURM_JOB_ID, SLURM_JOB_NODELIST); nothing outside an
/// allocation.
std::optional<std::vector<std::string>> allocated_nodes();

/// Runs nodes as tasks of srun in this process's allocation, one per Slurm node. The host of a node
/// is its Slurm name; nodes with equal arguments share a step. All hosts must see the program and
/// the files at the same paths.
class SlurmLauncher : public Launcher {
public:
  /// Throws std::invalid_argument outside an allocation.
  explicit SlurmLauncher(LaunchSettings settings,
                         std::chrono::milliseconds start_limit = std::chrono::minutes(2));
  ~SlurmLauncher() override;
  void start(const std::vector<NodeStart>& nodes) override;
  std::vector<NodeEnd> poll() override;
  void stop(std::chrono::milliseconds grace) override;

private:
  struct Step;
  void start_step(const std::vector<NodeStart>& nodes);
  void wait_for_start(Step& step);
  void take_ends(Step& step);
  void end_step(Step& step, const ChildProcesses::End& end);

  LaunchSettings settings_;
  std::chrono::milliseconds start_limit_;
  std::string srun_;
  std::string scancel_;
  std::vector<std::string> allocated_;
  std::vector<NodeEnd> ended_;
  std::vector<std::shared_ptr<Step>> steps_;
  ChildProcesses children_;
};

/// Submits a batch script, follows it through requeues, and cancels it.
class SlurmJob {
public:
  /// Submits the script. Throws std::runtime_error with the output of sbatch if that fails.
  SlurmJob(const std::filesystem::path& script, const std::vector<std::string>& options = {});

  struct State {
    std::string name = {};   // "PENDING", "RUNNING", "COMPLETED", "FAILED", "PREEMPTED", …
    std::string reason = {}; // why the job is pending or has failed; or "None"
    bool ended = false;      // it has ended and will not be requeued
    bool good = false;       // whether its script ended with exit code 0
    int exit_code = 0;
    int restarts = 0;
    std::filesystem::path output = {}; // on a file system that its node can access
  };

  const std::string& id() const { return id_; }

  /// Asks Slurm for the job's state. Returns nothing if the controller does not answer; the next
  /// call asks again.
  std::optional<State> state();

  /// The complete lines that the script has written since the last call.
  std::vector<std::string> new_output();

  /// Sends SIGTERM to every process of the job and kills the rest after `grace`. Returns false if
  /// Slurm does not report the job's end within another minute.
  bool cancel(std::chrono::milliseconds grace);

private:
  Finished run(std::vector<std::string> words);
  std::string sbatch_, scontrol_, scancel_;
  std::string id_;
  std::filesystem::path output_;
  std::streamoff read_ = 0;
  std::string partial_;
  ChildProcesses children_;
};

/// Parses a line of `scontrol show job -o`. Throws std::invalid_argument for any other text.
SlurmJob::State parse_job(const std::string& line);

} // namespace troupe::experiments::launchers
