#pragma once

#include <chrono>
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
  std::vector<NodeEnd> poll() override;
  void stop(std::chrono::milliseconds grace) override;

private:
  void start_nodes(const std::vector<NodeStart>& nodes, const std::stop_token& ended) override;
  struct Step;
  void start_step(const std::vector<NodeStart>& nodes);
  void wait_for_start(Step& step, const std::stop_token& ended);
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

} // namespace troupe::experiments::launchers
