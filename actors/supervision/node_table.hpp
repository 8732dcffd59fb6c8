#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "actors/placement/placer.hpp"

namespace troupe::actors {

/// Decides which nodes a run has and which of them a process goes to. Pure; time in ticks.
class NodeTable {
public:
  struct Node {
    std::uint64_t life = 0;
    std::int64_t heard = 0; // tick of its last heartbeat
    std::string address;
  };

  /// Nodes that `placer` has are expected to join until tick `join_by`; `restores`: with processes
  /// of a dead head, so that place_all() places none.
  NodeTable(Placer placer, std::int64_t join_by, bool restores = false);

  const std::map<std::string, Node>& up() const { return up_; }
  const std::map<std::string, NodeResources>& known() const { return known_; } // up or expected

  /// A node joins, or the same one again. What the cluster file says of it holds.
  void join(NodeResources node, std::uint64_t life, std::int64_t now);
  /// False: the supervisor has given that life of the node up.
  bool beat(const std::string& name, std::uint64_t life, std::int64_t now);
  std::vector<std::string> silent_since(std::int64_t tick) const;
  /// False: it was not up.
  bool remove(const std::string& name);

  /// Once all expected nodes have joined or the time for it is over, places all processes at once
  /// and returns why that failed; else, and from then on, "".
  std::string place_all(const std::map<std::string, int>& counts, std::int64_t now);
  /// Places a process on a node that is up; learners wait until all of them have a place.
  Placing place(const std::string& role, int index, int learners);
  /// Of a process that a dead head had placed there: as Placer::restore().
  std::string restore(const std::string& role, int index, const std::string& node,
                      const CoreSet& cores, const std::vector<int>& gpus) {
    return placer_.restore(role, index, node, cores, gpus);
  }
  bool placed() const { return placed_; } // place_all() was done
  void release(const std::string& role, int index) { placer_.release(role, index); }
  /// "" where it has no place.
  std::string node_of(const std::string& role, int index) const;
  /// Reserves places for processes `from` to `to` - 1 of a role: all, or none and the problem.
  std::string reserve(const std::string& role, int from, int to);

private:
  bool has_place(const std::string& role, int index) const;

  Placer placer_;
  std::int64_t join_by_;
  bool restores_;
  std::map<std::string, Node> up_;
  std::map<std::string, NodeResources> known_;
  bool placed_ = false;
};

} // namespace troupe::actors
