#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/protocol/system.hpp"
#include "actors/remoting/remoting.hpp"

namespace troupe::experiments {

/// State shared by a simulated node and its roles.
struct SimulatedLife {
  using Clock = std::chrono::steady_clock;
  std::string name = {};
  std::uint64_t life = 0;
  std::chrono::milliseconds period{1000}; // between heartbeats of the node
  double phase = 0;                       // delay of the first heartbeat, as a fraction of `period`
  std::atomic<bool> silent = false;
  std::mutex mutex = {}; // guards the members below
  std::map<std::pair<std::string, std::int32_t>, caf::actor> roles = {};
};

/// A node as its head sees it. It has its own actor system and connection, sends the messages of a
/// join, and sends heartbeats. Stand-ins for the roles placed on it also join (over the node's
/// connection, whereas a real process has its own). It uses one thread for its actors, one for its
/// clock and one for its connection.
class SimulatedNode {
public:
  /// Joins the run, with room for twice as many environment `actors` as the head will place on it.
  /// Throws std::runtime_error if the head cannot be reached or refuses.
  SimulatedNode(std::string name, int actors, std::uint16_t head_port,
                const std::shared_ptr<const actors::ClusterKeys>& keys);
  ~SimulatedNode();
  SimulatedNode(const SimulatedNode&) = delete;
  SimulatedNode& operator=(const SimulatedNode&) = delete;

  /// Stops its heartbeats; its connection stays open.
  void fall_silent() { shared_->silent = true; }
  const std::string& name() const { return shared_->name; }
  std::vector<std::pair<std::string, std::int32_t>> roles() const; // roles placed on it

private:
  struct Config : actors::SystemConfig {
    Config();
  };
  Config config_;
  caf::actor_system system_;
  actors::Remoting remoting_;
  std::shared_ptr<SimulatedLife> shared_;
  caf::actor agent_, node_;
};

/// The nodes that a process of the benchmark plays: "PORT:FIRST:COUNT:SILENT:ACTORS:KEYS".
struct SimulatedSeat {
  std::uint16_t head_port = 0;
  int first = 0;
  int count = 0;      // 0: it keeps sending requests to the head instead
  int silent = 0;     // how many nodes fall silent at SIGUSR1
  int actors = 1;     // environment actors per node
  std::string keys{}; // folder of the keys; empty: none
};
std::string seat_text(const SimulatedSeat& seat);
/// Throws std::invalid_argument.
SimulatedSeat parse_simulated_seat(const std::string& text);
/// The name of a node, "node-0017".
std::string simulated_name(int number);

/// The main function of such a process. It prints "joined N" when all its nodes have joined, after
/// N attempts. At SIGUSR2 it prints "role NAME INDEX SECONDS" for each role, then "end". The first
/// SIGUSR1 makes its silent nodes fall silent (it prints the same lines for their roles); the next
/// one restarts them ("joined N"). SIGTERM ends it. A process that sends requests prints at SIGUSR2
/// the quantiles of the time since the previous ones: "asked COUNT P50 P99 MOST", in milliseconds.
void play_simulated_seat(const SimulatedSeat& seat);

} // namespace troupe::experiments
