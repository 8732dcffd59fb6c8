#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::actors {

/// The resources that each process of a role needs, and the nodes that it may run on.
struct RoleNeeds {
  int cores = 1; // 0: it needs none and is not pinned
  int gpus = 0;
  std::int64_t memory_bytes = 0;
  std::vector<std::string> together = {}; // roles required on its node, if they are placed
  std::vector<std::string> apart = {};    // roles that its node must not run
  bool on_gpu_node = false;
  std::map<std::string, std::string> on_labels = {}; // its node must have all of them
  std::vector<std::string> on_nodes = {}; // names or groups of permitted nodes; empty: any
  bool pack = false;                      // use few nodes instead of many
};

/// Throws std::invalid_argument on needs that are negative, contradict each other, or name an
/// unknown role.
void check_needs(const std::map<std::string, RoleNeeds>& roles);

/// Formats needs, for example "2 cores, 1 GPU and 16 GiB of memory, on a node with GPUs, apart from
/// learner".
std::string needs_text(const RoleNeeds& needs);

/// Formats a count, for example "1 core" or "2 cores".
std::string counted(std::size_t count, const std::string& one);

} // namespace troupe::actors
