#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::actors {

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

/// Throws std::invalid_argument for needs that are negative, that contradict each other, or are
/// about a role that there is none of.
void check_needs(const std::map<std::string, RoleNeeds>& roles);

/// "2 cores, 1 GPU and 16 GiB of memory, on a node with GPUs, apart from learner"
std::string needs_text(const RoleNeeds& needs);

/// "a, b and c"
std::string listed(const std::vector<std::string>& parts, const std::string& last = " and ");

/// "1 core", "2 cores"
std::string counted(std::size_t count, const std::string& one);

} // namespace troupe::actors
