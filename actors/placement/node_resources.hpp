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

/// Formats a core set as taskset and cgroups do, for example "0-3,8".
std::string core_set_text(const CoreSet& cores);

/// Parses the output of core_set_text(). Throws std::invalid_argument if the text is malformed or a
/// processor number is above 65535.
CoreSet parse_core_set(std::string_view text);

/// The processors and GPUs of one NUMA node.
struct NumaNode {
  CoreSet cores = {};
  std::vector<int> gpus = {};
};

/// The resources that a node offers to roles.
struct NodeResources {
  std::string name = {};
  std::string address = {};        // at which other nodes reach it; empty until it is known
  std::vector<NumaNode> numa = {}; // all its processors and GPUs
  std::int64_t memory_bytes = 0;   // 0: memory is not counted
  std::map<std::string, std::string> labels = {};
  std::string group = {}; // group of equal nodes; rules may name it in place of a node
  bool known = true;      // false: the node has not reported yet; a plan assumes that it has enough
  bool counts = false;    // numa has only the right numbers of processors and GPUs, for a plan
  /// Whether it may use as many processors as it lists, but any of the host's. Its processes are
  /// then not pinned.
  bool shares_cores = false;
};

CoreSet cores_of(const NodeResources& node);
std::vector<int> gpus_of(const NodeResources& node);

/// Keeps only the first `cores` processors and `gpus` GPUs, NUMA node by NUMA node.
void limit_resources(NodeResources& node, std::size_t cores, std::size_t gpus);

/// Formats a size, for example "1.5 GiB".
std::string bytes_text(std::int64_t bytes);

/// The system files that describe a host; tests use another root.
struct HostFiles {
  std::filesystem::path root = "/"; // contains sys/, proc/ and dev/
  CoreSet allowed = {};             // processors that this process may run on; empty: all
  std::string visible_gpus = {};    // CUDA_VISIBLE_DEVICES
  bool hides_gpus = false;          // whether CUDA_VISIBLE_DEVICES is set
};

/// Returns the processors (by NUMA node), NVIDIA GPUs and memory that this process may use: the
/// host's, limited by the process's affinity, control group and CUDA_VISIBLE_DEVICES. GPUs are
/// numbered from 0 among the visible ones, in PCI bus order (CUDA_DEVICE_ORDER=PCI_BUS_ID). A
/// control group's limit below the number of processors makes it share them. A missing or malformed
/// file counts as no limit.
NodeResources resources_of_host(const HostFiles& files);

/// Returns the resources of this process under the host's name. Any thread.
NodeResources resources_of_this_host();

} // namespace troupe::actors
