#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/placement/core_choice.hpp"
#include "actors/placement/node_resources.hpp"
#include "actors/placement/role_needs.hpp"

namespace troupe::actors {

/// A process of a role: "learner", 2.
using RoleIndex = std::pair<std::string, int>;

/// The node of a process and its resources there.
struct Assignment {
  std::string node = {};
  CoreSet cores = {}; // to be pinned to; within one NUMA node if they fit
  std::vector<int> gpus = {};
  std::int64_t memory_bytes = 0;
};

/// An assignment, or why there is none.
struct Placing {
  std::optional<Assignment> at = {};
  std::string problem = {}; // names the role, its needs, the nearest node and what that lacks
  explicit operator bool() const { return at.has_value(); }
};

/// Assigns the processes of a run to nodes. It has no clock, thread or randomness: the same calls
/// give the same result. One thread at a time.
///
/// No GPU and no byte is assigned twice, and a core only with `oversubscribe`, which shares the
/// least used ones. Among suitable nodes a spread role takes the one with the fewest processes of
/// the role, then the least used; a packed role the one with the most, then the fullest; a role
/// without GPUs avoids nodes with free GPUs; the node added first wins a tie.
class Placer {
public:
  /// Throws std::invalid_argument on negative needs, and on a rule about an unknown role.
  explicit Placer(std::map<std::string, RoleNeeds> roles, bool oversubscribe = false);

  /// Throws std::invalid_argument if there is a node of that name, or it lists a core twice.
  void add_node(NodeResources node);

  /// The node died or left: returns the processes that have lost their place, by role and index.
  std::vector<RoleIndex> remove_node(const std::string& name);

  /// Assigns a process to a node; keeps an existing assignment. Throws std::invalid_argument on an
  /// unknown role or an index below 0.
  Placing place(const std::string& role, int index);

  /// Places `counts[role]` processes of each role, the hardest first; packs every role if spreading
  /// leaves no room for all. Places all of them, or none and returns the first problem. Keeps
  /// existing assignments.
  std::string place_all(const std::map<std::string, int>& counts);

  /// Assigns a process to what it was started with, in place of an assignment that it may have.
  /// Returns the problem, or "": the node is unknown or lacks a core or GPU of these, or has given
  /// one to another process. Without cores it takes as many as its role needs. Throws
  /// std::invalid_argument on an unknown role.
  std::string restore(const std::string& role, int index, const std::string& node,
                      const CoreSet& cores, const std::vector<int>& gpus);

  /// Frees its resources; no effect without an assignment.
  void release(const std::string& role, int index);

  /// nullptr: not assigned.
  const Assignment* find(const std::string& role, int index) const;
  const std::map<RoleIndex, Assignment>& assignments() const { return assignments_; }

  /// The free resources of a node; of its cores the unused ones. Throws std::invalid_argument on an
  /// unknown node.
  NodeResources free(const std::string& node) const;

  std::vector<std::string> nodes() const; // in the order they were added

private:
  struct Node {
    NodeResources resources;
    NodeUse use = {};
    std::size_t free_cores = 0;            // unused
    std::size_t users = 0;                 // of all its cores together
    std::size_t gpus = 0;                  // in all
    std::map<std::string, int> roles = {}; // how many of each are on it
  };
  /// What a node lacks for a process: counts of broken rules and of resources; descriptions, if
  /// `words` is set.
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
  void assign(const RoleIndex& who, Node& node, Assignment at);
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
