#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "experiments/launchers/child_processes.hpp"
#include "experiments/launchers/launcher.hpp"

namespace troupe::experiments::launchers {

extern const char* const kRayNodes; // ray_nodes.py

struct RaySettings {
  std::string address = "auto"; // of the cluster, as for ray.init()
  std::string python = "python3";
  std::string program = {};        // on the hosts; "": LaunchSettings::program
  std::string strategy = "SPREAD"; // of the placement group
  std::chrono::milliseconds start_limit{120'000};
};

/// Starts nodes as actors of a Ray cluster that runs already, one in each bundle of a placement
/// group, by a Python program that has the package ray. All hosts see the program and the files at
/// the same paths. When this process dies, Ray ends the actors and they their nodes. A node whose
/// host is lost is started again in its bundle, which Ray reserves elsewhere.
class RayLauncher : public Launcher {
public:
  RayLauncher(LaunchSettings settings, RaySettings ray);
  ~RayLauncher() override;
  void start(const std::vector<NodeStart>& nodes) override;
  std::vector<NodeEnd> poll() override;
  void stop(std::chrono::milliseconds grace) override;

private:
  struct Node {
    NodeStart start;
    bool started = false;
    std::string last_line = {};
    std::optional<NodeEnd> end = {};
  };
  bool take_line(std::string_view line);
  bool take_word(std::string_view text);
  std::string order(const std::vector<NodeStart>& nodes) const;
  bool wait_for(bool (*done)(const Node&), ChildProcesses::Clock::time_point deadline);
  void program_ended(const ChildProcesses::End& end);

  LaunchSettings settings_;
  RaySettings ray_;
  std::vector<std::string> words_;
  std::optional<ChildProcesses::Id> program_;
  std::mutex mutex_; // of the rest
  std::condition_variable changed_;
  std::map<std::string, Node> nodes_; // that run, or whose end was not told
  std::string problem_;               // of the program
  ChildProcesses children_;           // its thread calls take_line(): it goes first
};

} // namespace troupe::experiments::launchers
