#include "actors/placement/node_resources.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <stdexcept>

#include "env/text/number_in.hpp"

namespace troupe::actors {
namespace {

constexpr int kMostCores = 65'536;

/// Parses a whole number below kMostCores; -1 on failure.
int core_number(std::string_view text) {
  return env::number_in<int>(text, 0, kMostCores - 1).value_or(-1);
}

} // namespace

std::string core_set_text(const CoreSet& cores) {
  std::string out;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) {
      ++last;
    }
    out.append(out.empty() ? "" : ",").append(std::to_string(cores[i]));
    if (last > i) {
      out.append(last == i + 1 ? "," : "-").append(std::to_string(cores[last]));
    }
    i = last + 1;
  }
  return out;
}

CoreSet parse_core_set(std::string_view text) {
  CoreSet cores;
  const auto refuse = [&] {
    throw std::invalid_argument(std::string("\"") + std::string(text.substr(0, 80))
                                + "\" is not a set of processors; write it as \"0-3,8\", with "
                                  "numbers up to 65535");
  };
  for (auto rest = text;;) {
    const auto part = rest.substr(0, rest.find(','));
    const auto dash = part.find('-');
    const int first = core_number(part.substr(0, dash));
    const int last = dash == std::string_view::npos ? first : core_number(part.substr(dash + 1));
    if (first < 0 || last < first) {
      refuse();
    }
    for (int core = first; core <= last; ++core) {
      cores.push_back(core);
    }
    if (part.size() == rest.size()) {
      break;
    }
    rest.remove_prefix(part.size() + 1);
    if (cores.size() > kMostCores) {
      refuse();
    }
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

CoreSet cores_of(const NodeResources& node) {
  CoreSet all;
  for (const NumaNode& numa : node.numa) {
    all.insert(all.end(), numa.cores.begin(), numa.cores.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<int> gpus_of(const NodeResources& node) {
  std::vector<int> all;
  for (const NumaNode& numa : node.numa) {
    all.insert(all.end(), numa.gpus.begin(), numa.gpus.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

void limit_resources(NodeResources& node, std::size_t cores, std::size_t gpus) {
  for (NumaNode& numa : node.numa) {
    numa.cores.resize(std::min(numa.cores.size(), cores));
    numa.gpus.resize(std::min(numa.gpus.size(), gpus));
    cores -= numa.cores.size();
    gpus -= numa.gpus.size();
  }
  std::erase_if(node.numa,
                [](const NumaNode& numa) { return numa.cores.empty() && numa.gpus.empty(); });
}

std::string bytes_text(std::int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, value < 100 && unit > 0 ? "%.3g %s" : "%.0f %s", value,
                kUnits[unit]);
  return text;
}

} // namespace troupe::actors
