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

/// What a simulated node and its roles share.
struct SimulatedLife {
  using Clock = std::chrono::steady_clock;
  std::string name = {};
  std::uint64_t life = 0;
  std::chrono::milliseconds period{1000}; // between signs of life
  double phase = 0;                       // of a period, before the first
  std::atomic<bool> silent = false;
  std::mutex mutex = {}; // of what follows
  std::map<std::pair<std::string, std::int32_t>, caf::actor> roles = {};
};

/// A node as its head sees it: its own actor system and connection, the messages of a join,
/// heartbeats at the head's rate, and stand-ins for the roles placed on it, which join and send
/// heartbeats (over the node's connection; a real process has its own). One thread for its actors,
/// one for its clock, one for its connection.
class SimulatedNode {
public:
  /// Joins. Throws std::runtime_error when the head cannot be reached or refuses.
  SimulatedNode(std::string name, std::uint16_t head_port,
                const std::shared_ptr<const actors::ClusterKeys>& keys);
  ~SimulatedNode();
  SimulatedNode(const SimulatedNode&) = delete;
  SimulatedNode& operator=(const SimulatedNode&) = delete;

  /// Stops the heartbeats of the node and its roles; its connection stays open.
  void fall_silent() { shared_->silent = true; }
  const std::string& name() const { return shared_->name; }
  std::vector<std::pair<std::string, std::int32_t>> roles() const; // that are placed on it

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

/// Which nodes a process of the benchmark plays: "PORT:FIRST:COUNT:SILENT:KEYS".
struct SimulatedSeat {
  std::uint16_t head_port = 0;
  int first = 0;
  int count = 0;      // 0: it asks the head for something all the time
  int silent = 0;     // of them, when told so
  std::string keys{}; // folder; empty: none
};
std::string seat_text(const SimulatedSeat& seat);
/// Throws std::invalid_argument.
SimulatedSeat parse_simulated_seat(const std::string& text);
/// "node-0017"
std::string simulated_name(int number);

/// The body of such a process. Prints "joined N" when all its nodes have joined. SIGUSR2 prints
/// "role NAME INDEX" of each role, then "end". The first SIGUSR1 silences its silent nodes ("role
/// NAME INDEX SECONDS" of their roles, then "end"), the next restarts them ("joined N"). SIGTERM
/// ends it. A process that sends requests prints quantiles at SIGUSR2 ("asked COUNT P50 P99 MOST",
/// milliseconds), over the time since the previous ones.
void play_simulated_seat(const SimulatedSeat& seat);

} // namespace troupe::experiments
