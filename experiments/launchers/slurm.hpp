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

/// Expands a node list of Slurm, "gpu1,node[01-03,7]". Throws std::invalid_argument for other text
/// and for more than 65536 names.
std::vector<std::string> parse_node_list(std::string_view list);

/// The nodes of this process's allocation (SLURM_JOB_ID, SLURM_JOB_NODELIST); nothing outside one.
std::optional<std::vector<std::string>> allocated_nodes();

/// Runs nodes as tasks of srun in the allocation of this process, one per Slurm node. A node's host
/// is its name in Slurm; nodes with equal arguments share a step. All hosts see the program and the
/// files at the same paths.
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

/// Submits a batch script, follows it over requeues, and cancels it.
class SlurmJob {
public:
  /// Submits at once. Throws std::runtime_error with what sbatch said.
  SlurmJob(const std::filesystem::path& script, const std::vector<std::string>& options = {});

  struct State {
    std::string name = {};   // "PENDING", "RUNNING", "COMPLETED", "FAILED", "PREEMPTED", …
    std::string reason = {}; // why it waits or has failed; "None"
    bool ended = false;      // and will not be queued again
    bool good = false;       // its script ended with exit code 0
    int exit_code = 0;
    int restarts = 0;
    std::filesystem::path output = {}; // of the script, on a file system that its node sees
  };

  const std::string& id() const { return id_; }

  /// Asks Slurm. A controller that does not answer is asked again by the next call: nothing.
  std::optional<State> state();

  /// What the script has written since the last call, whole lines.
  std::vector<std::string> new_output();

  /// SIGTERM to every process of the job; what is left after `grace` is killed. False when Slurm
  /// does not say within a minute more that it has ended.
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

/// From a line of `scontrol show job -o`. Throws std::invalid_argument when it is none.
SlurmJob::State parse_job(const std::string& line);

} // namespace troupe::experiments::launchers
