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

/// Role and index of a process, for example {"learner", 2}.
using RoleIndex = std::pair<std::string, int>;

/// The node of a process and its resources there.
struct Assignment {
  std::string node = {};
  CoreSet cores = {}; // to pin the process to; within one NUMA node if they fit
  std::vector<int> gpus = {};
  std::int64_t memory_bytes = 0;
};

/// An assignment, or the reason why there is none.
struct Placing {
  std::optional<Assignment> at = {};
  std::string problem = {}; // names the role, its needs, the nearest node and what it lacks
  explicit operator bool() const { return at.has_value(); }
};

/// Assigns the processes of a run to nodes. It has no clock, thread or randomness: the same calls
/// give the same result. One thread at a time.
///
/// No GPU or byte is assigned twice. A core is shared only with `oversubscribe`, which picks the
/// least used cores. Among suitable nodes a spread role takes the one with the fewest processes of
/// the role, then the least used; a packed role takes the one with the most, then the fullest. A
/// role without GPUs avoids nodes with free GPUs. The node added first wins a tie.
class Placer {
public:
  /// Throws std::invalid_argument on negative needs or a rule about an unknown role.
  explicit Placer(std::map<std::string, RoleNeeds> roles, bool oversubscribe = false);

  /// Throws std::invalid_argument if the name is already taken or the node lists a core twice.
  void add_node(NodeResources node);

  /// Removes a node that died or left. Returns the processes that were assigned to it, by role and
  /// index.
  std::vector<RoleIndex> remove_node(const std::string& name);

  /// Assigns a process to a node, or returns its existing assignment. Throws std::invalid_argument
  /// on an unknown role or an index below 0.
  Placing place(const std::string& role, int index);

  /// Places `counts[role]` processes of each role, the most demanding roles first. If spreading
  /// leaves no room for all, it packs every role. Places all of them, or none and returns the first
  /// problem; "" on success. Keeps existing assignments.
  std::string place_all(const std::map<std::string, int>& counts);

  /// Assigns a process to the resources that it was started with, replacing any assignment it has.
  /// Returns "" or the problem: the node is unknown, lacks one of these cores or GPUs, or has given
  /// it to another process. Without cores it chooses as many as the role needs. Throws
  /// std::invalid_argument on an unknown role.
  std::string restore(const std::string& role, int index, const std::string& node,
                      const CoreSet& cores, const std::vector<int>& gpus);

  /// Frees the process's resources. Has no effect without an assignment.
  void release(const std::string& role, int index);

  /// Returns nullptr if the process is not assigned.
  const Assignment* find(const std::string& role, int index) const;
  const std::map<RoleIndex, Assignment>& assignments() const { return assignments_; }

  /// Returns the free resources of a node; a core is free if no process uses it. Throws
  /// std::invalid_argument on an unknown node.
  NodeResources free(const std::string& node) const;

  std::vector<std::string> nodes() const; // in the order they were added

private:
  struct Node {
    NodeResources resources;
    NodeUse use = {};
    std::size_t free_cores = 0;            // used by no process
    std::size_t users = 0;                 // sum over all its cores
    std::size_t gpus = 0;                  // in all
    std::map<std::string, int> roles = {}; // number of its processes of each role
  };
  /// Why a node does not suit a process: the number of broken rules and of missing resources, with
  /// a description of each if `words` is set.
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
