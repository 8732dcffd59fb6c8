#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::actors {

/// Numbers of logical processors, ascending, none twice.
using CoreSet = std::vector<int>;

/// "0-3,8": as taskset and cgroups write it.
std::string core_set_text(const CoreSet& cores);

/// The same backwards. Throws std::invalid_argument for text that is none, or names more than 4096
/// processors.
CoreSet parse_core_set(std::string_view text);

/// Processors and GPUs that are near each other.
struct NumaNode {
  CoreSet cores = {};
  std::vector<int> gpus = {};
};

/// What a node gives to roles.
struct NodeResources {
  std::string name = {};
  std::string address = {};        // that others reach it at; "": not known yet
  std::vector<NumaNode> numa = {}; // all its processors and GPUs; one entry where it has one
  std::int64_t memory_bytes = 0;   // 0: not counted
  std::map<std::string, std::string> labels = {};
  std::string group = {}; // of nodes that are alike; rules may name it like a node
};

std::size_t core_count(const NodeResources& node);
std::size_t gpu_count(const NodeResources& node);

/// What each process of a role takes, and where it may be.
struct RoleNeeds {
  int cores = 1; // 0: it takes none and is not pinned
  int gpus = 0;
  std::int64_t memory_bytes = 0;
  std::vector<std::string> together = {}; // roles: its node has one of each, once any is placed
  std::vector<std::string> apart = {};    // roles: its node has none of them, nor do they join it
  bool on_gpu_node = false;
  std::map<std::string, std::string> on_labels = {}; // all of them
  std::vector<std::string> on_nodes = {};            // names or groups; empty: any
  bool pack = false;                                 // on few nodes; else over many
};

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
    std::map<int, int> users; // of each core
    std::map<int, int> gpus;  // free ones, with the NUMA node they are on
    std::int64_t memory_taken = 0;
    bool cordoned = false;
  };
  struct Fit;
  Fit fit(const Node& node, const std::string& role, const RoleNeeds& needs) const;
  Assignment take(Node& node, const RoleNeeds& needs);
  std::string problem(const RoleIndex& who, const RoleNeeds& needs) const;
  bool try_all(const std::vector<RoleIndex>& order, bool packed, std::string& problem);
  std::vector<RoleIndex> hardest_first(const std::map<std::string, int>& counts) const;

  std::map<std::string, RoleNeeds> roles_;
  bool oversubscribe_ = false;
  std::vector<Node> nodes_;
  std::map<RoleIndex, Assignment> assignments_;
};

} // namespace troupe::actors
