#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "actors/placement/placer.hpp"

namespace troupe::actors {

/// Decides which nodes a run has and on which of them each process runs. Pure; time is in ticks.
class NodeTable {
public:
  struct Node {
    std::uint64_t life = 0;
    std::int64_t heard = 0; // tick of its last heartbeat
    std::string address;
  };

  /// The nodes in `placer` are expected to join until tick `join_by`. `restores`: the nodes have
  /// processes of a dead head, so place_all() places none.
  NodeTable(Placer placer, std::int64_t join_by, bool restores = false);

  const std::map<std::string, Node>& up() const { return up_; }
  const std::map<std::string, NodeResources>& known() const { return known_; } // up or expected

  /// Adds a node that joins, or joins again. What the cluster file says about it takes precedence;
  /// of counted cores and GPUs (NodeResources::counts) it gets that many of its own.
  void join(NodeResources node, std::uint64_t life, std::int64_t now);
  /// Returns false if the supervisor has given up that life of the node.
  bool beat(const std::string& name, std::uint64_t life, std::int64_t now);
  std::vector<std::string> silent_since(std::int64_t tick) const;
  /// Returns false if the node was not up.
  bool remove(const std::string& name);

  /// Places all processes at once when all expected nodes have joined or join_by has passed, and
  /// returns the problem if that fails. Otherwise, and in later calls, returns "".
  std::string place_all(const std::map<std::string, int>& counts, std::int64_t now);
  /// Places a process on a node that is up. A learner waits until all learners have a place.
  Placing place(const std::string& role, int index, int learners);
  /// Restores the assignment of a process that a dead head had placed, as Placer::restore() does.
  std::string restore(const std::string& role, int index, const std::string& node,
                      const CoreSet& cores, const std::vector<int>& gpus) {
    return placer_.restore(role, index, node, cores, gpus);
  }
  bool placed() const { return placed_; } // whether place_all() is done
  void release(const std::string& role, int index) { placer_.release(role, index); }
  /// Returns "" if the process has no place.
  std::string node_of(const std::string& role, int index) const;
  /// Reserves places for processes `from` to `to` - 1 of a role: for all of them, or for none and
  /// returns the problem.
  std::string reserve(const std::string& role, int from, int to);

private:
  bool has_place(const std::string& role, int index) const;

  Placer placer_;
  std::int64_t join_by_;
  bool restores_;
  std::map<std::string, Node> up_;
  std::map<std::string, NodeResources> given_; // by the cluster file
  std::map<std::string, NodeResources> known_;
  bool placed_ = false;
};

} // namespace troupe::actors
