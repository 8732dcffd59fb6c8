#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/core_choice.hpp"
#include "actors/node_resources.hpp"
#include "actors/role_needs.hpp"

namespace troupe::actors {

/// A process of a role: "learner", 2.
using RoleIndex = std::pair<std::string, int>;

/// Where a process is, and what is its own there.
struct Assignment {
  std::string node = {};
  CoreSet cores = {}; // to be pinned to; within one NUMA node where they fit
  std::vector<int> gpus = {};
  std::int64_t memory_bytes = 0;
};

/// An assignment, or why there is none.
struct Placing {
  std::optional<Assignment> at = {};
  std::string problem = {}; // names the role, what it needs, the nearest node and what that lacks
  explicit operator bool() const { return at.has_value(); }
};

/// Decides where the processes of a run are. It has no clock, thread or randomness: the same calls
/// give the same places. Not for several threads at once.
///
/// Nothing is given twice: no GPU, no byte, and no core but with `oversubscribe`, where the least
/// used ones are shared. Of nodes that will do, a spread role takes the one with the fewest of its
/// like, then the least used; a packed one the one with the most of its like, then the fullest; a
/// role without GPUs leaves nodes with free GPUs to others where it can; the node that was added
/// first wins a tie.
class Placer {
public:
  /// Throws std::invalid_argument for needs that are negative, and for a rule about a role that
  /// there is none of.
  explicit Placer(std::map<std::string, RoleNeeds> roles, bool oversubscribe = false);

  /// Throws std::invalid_argument when there is a node of that name, or it lists a core twice.
  void add_node(NodeResources node);

  /// It died or left: gives those that have no place any more, by role and index.
  std::vector<RoleIndex> remove_node(const std::string& name);

  /// A cordoned node keeps what is there and gets nothing new.
  void cordon(const std::string& name, bool cordoned);

  /// Gives a process a place; one that has one keeps it. Throws std::invalid_argument for a role
  /// that there is none of, or an index below 0.
  Placing place(const std::string& role, int index);

  /// Places `counts[role]` processes of each role, those that are hardest to place first; tries
  /// every role packed where spreading them leaves no room for all. All, or none and the problem
  /// of the first. Those that have a place keep it.
  std::string place_all(const std::map<std::string, int>& counts);

  /// Gives its resources back; nothing when it has no place.
  void release(const std::string& role, int index);

  /// nullptr: it has no place.
  const Assignment* find(const std::string& role, int index) const;
  const std::map<RoleIndex, Assignment>& assignments() const { return assignments_; }

  /// What is left of a node; cores that nobody has. Throws std::invalid_argument for a node that
  /// there is none of.
  NodeResources free(const std::string& node) const;

  std::vector<std::string> nodes() const; // in the order they were added

private:
  struct Node {
    NodeResources resources;
    NodeUse use = {};
    std::size_t free_cores = 0;            // that nobody uses
    std::size_t users = 0;                 // of all its cores together
    std::size_t gpus = 0;                  // in all
    std::map<std::string, int> roles = {}; // how many of each are on it
    bool cordoned = false;
  };
  /// What a node lacks for a process: broken rules, resources; as `words` where somebody asks.
  struct Lack {
    int rules = 0, resources = 0;
    std::vector<std::string>* words = nullptr;
  };
  void broken_rules(const Node& node, const std::string& role, const RoleNeeds& needs,
                    Lack& lack) const;
  void missing_resources(const Node& node, const RoleNeeds& needs, Lack& lack) const;
  const RoleNeeds& needs_of(const std::string& role) const;
  Node* best_node(const std::string& role, bool pack);
  Placing put(const RoleIndex& who, bool pack);
  std::string problem(const RoleIndex& who) const;
  std::string put_all(const std::vector<RoleIndex>& order, bool pack);
  std::vector<RoleIndex> hardest_first(const std::map<std::string, int>& counts) const;
  std::vector<Node>::iterator node_named(const std::string& name);

  std::map<std::string, RoleNeeds> roles_;
  bool oversubscribe_ = false;
  std::vector<Node> nodes_;
  std::map<RoleIndex, Assignment> assignments_;
};

} // namespace troupe::actors
