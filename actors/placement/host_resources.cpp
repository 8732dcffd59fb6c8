#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "actors/placement/node_resources.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

/// Returns the first line of a small system file, or "" if it does not exist.
std::string line_of(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<std::int64_t> number_in(const std::string& text) {
  std::int64_t value = 0;
  const char* begin = text.data();
  const auto [end, error] = std::from_chars(begin, begin + text.size(), value);
  return error == std::errc() && end != begin ? std::optional(value) : std::nullopt;
}

CoreSet set_in(const std::string& text) {
  try {
    return text.empty() ? CoreSet() : parse_core_set(text);
  } catch (const std::invalid_argument&) {
    return {};
  }
}

/// Returns the number and the processors of each NUMA node.
std::vector<std::pair<int, NumaNode>> numa_nodes(const HostFiles& files) {
  const fs::path system = files.root / "sys/devices/system";
  const auto allowed = [&](const CoreSet& cores) {
    CoreSet kept;
    std::copy_if(cores.begin(), cores.end(), std::back_inserter(kept), [&](int core) {
      return files.allowed.empty()
             || std::binary_search(files.allowed.begin(), files.allowed.end(), core);
    });
    return kept;
  };
  std::vector<std::pair<int, NumaNode>> found;
  for (const int number : set_in(line_of(system / "node/online"))) {
    const fs::path folder = system / "node" / ("node" + std::to_string(number));
    NumaNode numa{.cores = allowed(set_in(line_of(folder / "cpulist")))};
    if (!numa.cores.empty()) {
      found.emplace_back(number, std::move(numa));
    }
  }
  if (found.empty()) {
    const CoreSet online = set_in(line_of(system / "cpu/online"));
    found.emplace_back(0, NumaNode{.cores = online.empty() ? files.allowed : allowed(online)});
  }
  return found;
}

/// Returns the control group's CPU limit: its file holds "max", or a quota and a period in
/// microseconds.
std::optional<std::size_t> core_limit(const HostFiles& files) {
  const std::string line = line_of(files.root / "sys/fs/cgroup/cpu.max");
  const auto quota = number_in(line);
  const auto space = line.find(' ');
  const auto period = space == std::string::npos ? std::nullopt : number_in(line.substr(space + 1));
  if (!quota || !period || *quota <= 0 || *period <= 0) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(std::max<std::int64_t>(1, *quota / *period));
}

std::int64_t memory_bytes(const HostFiles& files) {
  std::int64_t bytes = 0;
  std::ifstream in(files.root / "proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("MemTotal:")) {
      const auto begin = line.find_first_of("0123456789");
      bytes = number_in(begin == std::string::npos ? "" : line.substr(begin)).value_or(0) * 1024;
      break;
    }
  }
  const auto limit = number_in(line_of(files.root / "sys/fs/cgroup/memory.max"));
  return limit && *limit > 0 && (bytes == 0 || *limit < bytes) ? *limit : bytes;
}

/// Returns the NUMA nodes of the GPUs that have devices, in bus order; -1 if unknown.
std::vector<int> gpu_numa_nodes(const HostFiles& files) {
  std::vector<std::string> addresses;
  std::error_code ignored;
  for (const auto& entry :
       fs::directory_iterator(files.root / "proc/driver/nvidia/gpus", ignored)) {
    addresses.push_back(entry.path().filename().string());
  }
  std::sort(addresses.begin(), addresses.end());
  std::vector<int> found;
  for (const std::string& address : addresses) {
    const fs::path folder = files.root / "proc/driver/nvidia/gpus" / address;
    std::ifstream in(folder / "information");
    std::optional<std::int64_t> minor;
    for (std::string line; std::getline(in, line);) {
      const auto begin = line.find_first_of("0123456789");
      if (line.starts_with("Device Minor:") && begin != std::string::npos) {
        minor = number_in(line.substr(begin));
      }
    }
    // A container sees all GPUs of the host here but has only its own device files.
    if (minor && !fs::exists(files.root / "dev" / ("nvidia" + std::to_string(*minor)), ignored)) {
      continue;
    }
    const fs::path device = files.root / "sys/bus/pci/devices" / address / "numa_node";
    found.push_back(static_cast<int>(number_in(line_of(device)).value_or(-1)));
  }
  return found;
}

/// Returns the GPUs that CUDA_VISIBLE_DEVICES allows: the numbers before the first invalid one. Of
/// names only the count is known; they give -1.
std::vector<int> visible(const std::vector<int>& gpus, const HostFiles& files) {
  if (!files.hides_gpus) {
    return gpus;
  }
  std::vector<int> left;
  std::istringstream words(files.visible_gpus);
  for (std::string word; std::getline(words, word, ',') && left.size() < gpus.size();) {
    const bool number = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
      return std::isdigit(c) != 0;
    });
    const auto index = number ? number_in(word) : std::nullopt;
    if (number && (!index || *index >= static_cast<std::int64_t>(gpus.size()))) {
      break;
    }
    if (!number && !word.starts_with("GPU-") && !word.starts_with("MIG-")) {
      break; // "-1" and "NoDevFiles" end the list
    }
    left.push_back(number ? gpus[static_cast<std::size_t>(*index)] : -1);
  }
  return left;
}

} // namespace

NodeResources resources_of_host(const HostFiles& files) {
  auto found = numa_nodes(files);
  const auto gpus = visible(gpu_numa_nodes(files), files);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    auto at = std::find_if(found.begin(), found.end(),
                           [&](const auto& numa) { return numa.first == gpus[i]; });
    at = at == found.end() ? found.begin() : at;
    at->second.gpus.push_back(static_cast<int>(i));
  }
  NodeResources host;
  for (auto& [number, numa] : found) {
    host.numa.push_back(std::move(numa));
  }
  if (const auto limit = core_limit(files)) {
    host.shares_cores = *limit < cores_of(host).size();
    limit_resources(host, *limit, gpus.size());
  }
  host.memory_bytes = memory_bytes(files);
  return host;
}

NodeResources resources_of_this_host() {
  HostFiles files;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // Fails above 1024 processors; all of them are allowed then.
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &mask)) {
        files.allowed.push_back(core);
      }
    }
  }
  if (const char* gpus = std::getenv("CUDA_VISIBLE_DEVICES")) {
    files.visible_gpus = gpus;
    files.hides_gpus = true;
  }
  NodeResources host = resources_of_host(files);
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0) {
    host.name = name;
  }
  return host;
}

} // namespace troupe::actors
