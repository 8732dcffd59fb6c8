#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::actors {

/// The resources that each process of a role takes, and the nodes it may be on.
struct RoleNeeds {
  int cores = 1; // 0: none, and it is not pinned
  int gpus = 0;
  std::int64_t memory_bytes = 0;
  std::vector<std::string> together = {}; // roles: its node has one of each, if any is placed
  std::vector<std::string> apart = {};    // roles that are never on its node
  bool on_gpu_node = false;
  std::map<std::string, std::string> on_labels = {}; // all of them
  std::vector<std::string> on_nodes = {};            // names or groups; empty: any
  bool pack = false;                                 // on few nodes; else over many
};

/// Throws std::invalid_argument on needs that are negative, contradict each other, or name an
/// unknown role.
void check_needs(const std::map<std::string, RoleNeeds>& roles);

/// "2 cores, 1 GPU and 16 GiB of memory, on a node with GPUs, apart from learner"
std::string needs_text(const RoleNeeds& needs);

/// "a, b and c"
std::string listed(const std::vector<std::string>& parts, const std::string& last = " and ");

/// "1 core", "2 cores"
std::string counted(std::size_t count, const std::string& one);

} // namespace troupe::actors
