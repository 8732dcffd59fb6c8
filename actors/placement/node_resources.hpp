#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

/// Numbers of logical processors, ascending, without duplicates.
using CoreSet = std::vector<int>;

/// "0-3,8": as taskset and cgroups write it.
std::string core_set_text(const CoreSet& cores);

/// The reverse. Throws std::invalid_argument on other text, or a processor above 65535.
CoreSet parse_core_set(std::string_view text);

/// Processors and GPUs that are near each other.
struct NumaNode {
  CoreSet cores = {};
  std::vector<int> gpus = {};
};

/// The resources of a node for roles.
struct NodeResources {
  std::string name = {};
  std::string address = {};        // at which other nodes reach it; "": not known yet
  std::vector<NumaNode> numa = {}; // all its processors and GPUs
  std::int64_t memory_bytes = 0;   // 0: not counted
  std::map<std::string, std::string> labels = {};
  std::string group = {}; // of equal nodes; rules may name it like a node
  bool known = true;      // false: not reported yet; a plan assumes that it has enough
};

CoreSet cores_of(const NodeResources& node);
std::vector<int> gpus_of(const NodeResources& node);

/// Keeps the first `cores` of its processors and `gpus` of its GPUs, NUMA node by NUMA node.
void limit_resources(NodeResources& node, std::size_t cores, std::size_t gpus);

/// "1.5 GiB"
std::string bytes_text(std::int64_t bytes);

/// Where the system describes a host; tests use another folder.
struct HostFiles {
  std::filesystem::path root = "/"; // below it sys/, proc/ and dev/
  CoreSet allowed = {};             // that this process may run on; empty: all
  std::string visible_gpus = {};    // CUDA_VISIBLE_DEVICES
  bool hides_gpus = false;          // it is set
};

/// The processors (by NUMA node), NVIDIA GPUs and memory that this process may use: those of the
/// host, within its affinity, its control group and CUDA_VISIBLE_DEVICES. GPUs are numbered from 0
/// in the order of the bus (CUDA_DEVICE_ORDER=PCI_BUS_ID), among the visible ones. A missing or
/// malformed file counts as no limit.
NodeResources resources_of_host(const HostFiles& files);

/// The resources of this process, named by its host's name. Any thread.
NodeResources resources_of_this_host();

} // namespace troupe::actors
