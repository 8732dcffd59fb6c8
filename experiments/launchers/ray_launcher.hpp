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

extern const char* const kRayNodes; // the text of ray_nodes.py

struct RaySettings {
  std::string address = "auto"; // address of the cluster, as for ray.init()
  std::string python = "python3";
  std::string program = {};        // path on the hosts; "": LaunchSettings::program
  std::string strategy = "SPREAD"; // strategy of the placement group
  std::chrono::milliseconds start_limit{120'000};
};

/// Starts nodes as actors of a running Ray cluster, one in each bundle of a placement group,
/// through a Python program that needs the package ray. All hosts must see the program and the
/// files at the same paths. When this process dies, Ray ends the actors, and these end their nodes.
/// If a node's host is lost, Ray reserves the bundle on another host and the node is started there
/// again.
class RayLauncher : public Launcher {
public:
  RayLauncher(LaunchSettings settings, RaySettings ray);
  ~RayLauncher() override;
  std::vector<NodeEnd> poll() override;
  void stop(std::chrono::milliseconds grace) override;

private:
  void start_nodes(const std::vector<NodeStart>& nodes, const std::stop_token& ended) override;
  struct Node {
    NodeStart start;
    bool started = false;
    std::string last_line = {};
    std::optional<NodeEnd> end = {};
  };
  bool take_line(std::string_view line);
  bool take_word(std::string_view text);
  std::string order(const std::vector<NodeStart>& nodes) const;
  bool wait_for(bool (*done)(const Node&), ChildProcesses::Clock::time_point deadline,
                const std::stop_token& ended = {});
  void program_ended(const ChildProcesses::End& end);

  LaunchSettings settings_;
  RaySettings ray_;
  std::vector<std::string> words_;
  std::optional<ChildProcesses::Id> program_;
  std::mutex mutex_; // guards nodes_ and problem_
  std::condition_variable changed_;
  std::map<std::string, Node> nodes_; // nodes that run, or whose end poll() has not reported
  std::string problem_;               // the problem that the Python program reported
  ChildProcesses children_;           // destroyed first, because its thread calls take_line()
};

} // namespace troupe::experiments::launchers
