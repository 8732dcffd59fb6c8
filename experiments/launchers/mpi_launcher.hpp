#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "experiments/launchers/child_processes.hpp"
#include "experiments/launchers/launcher.hpp"

namespace troupe::experiments::launchers {

struct MpiSettings {
  std::string mpirun = "mpirun";
  std::string program = {};              // path on the hosts; "": LaunchSettings::program
  std::vector<std::string> options = {}; // additional arguments of mpirun
  std::chrono::milliseconds start_limit{120'000};
};

/// Reads the hosts from an mpirun host file, one per line. Throws std::invalid_argument if the file
/// cannot be read or lists none.
std::vector<std::string> read_hostfile(const std::filesystem::path& file);

/// Starts nodes with Open MPI's mpirun. All hosts must see the program and the files at the same
/// paths. The first start() uses one mpirun for all nodes. Other nodes survive the death of a node;
/// if a host dies or cannot be reached, mpirun ends them all. Later starts use one mpirun per node,
/// so that a dead host does not keep the others from being started again. Runs as root only if the
/// user has set the variables that Open MPI requires for that.
class MpiLauncher : public Launcher {
public:
  MpiLauncher(LaunchSettings settings, MpiSettings mpi);
  ~MpiLauncher() override;
  std::vector<NodeEnd> poll() override;
  void stop(std::chrono::milliseconds grace) override;

private:
  void start_nodes(const std::vector<NodeStart>& nodes, const std::stop_token& ended) override;
  struct Job;
  std::vector<std::string> words(const std::vector<NodeStart>& nodes) const;
  void start_job(const std::vector<NodeStart>& nodes);
  void wait_for_start(Job& job, ChildProcesses::Clock::time_point deadline,
                      const std::stop_token& ended);
  void take_ends(Job& job);
  void end_job(Job& job, const ChildProcesses::End& end);

  LaunchSettings settings_;
  MpiSettings mpi_;
  std::vector<NodeEnd> ended_;
  std::vector<std::shared_ptr<Job>> jobs_;
  bool started_ = false; // start() has been called
  ChildProcesses children_;
};

} // namespace troupe::experiments::launchers
