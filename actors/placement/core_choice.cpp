#include "actors/placement/core_choice.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace troupe::actors {
namespace {

/// Returns the `count` least used of `cores`, or all of them; earlier cores win ties.
CoreSet least_used(CoreSet cores, std::size_t count, const NodeUse& use) {
  std::stable_sort(cores.begin(), cores.end(),
                   [&](int a, int b) { return use.users.at(a) < use.users.at(b); });
  cores.resize(std::min(count, cores.size()));
  return cores;
}

int users_of(const CoreSet& cores, const NodeUse& use) {
  int sum = 0;
  for (const int core : cores) {
    sum += use.users.at(core);
  }
  return sum;
}

std::vector<int> unused_gpus(const NumaNode& numa, const NodeUse& use) {
  std::vector<int> left;
  std::copy_if(numa.gpus.begin(), numa.gpus.end(), std::back_inserter(left),
               [&](int gpu) { return !use.gpus.contains(gpu); });
  return left;
}

/// Returns how many of `cores` no process uses.
std::size_t unused_cores(const CoreSet& cores, const NodeUse& use) {
  return static_cast<std::size_t>(
      std::count_if(cores.begin(), cores.end(), [&](int core) { return use.users.at(core) == 0; }));
}

} // namespace

CoreChoice choose_cores(const NodeResources& node, const NodeUse& use, std::size_t cores,
                        std::size_t gpus, bool oversubscribe) {
  struct Candidate {
    std::tuple<bool, int, std::int64_t, std::int64_t> rank; // the lowest rank is taken first
    const NumaNode* numa = nullptr;
  };
  std::vector<Candidate> order;
  for (const NumaNode& numa : node.numa) {
    const std::size_t free = unused_cores(numa.cores, use);
    const auto free_gpus = static_cast<std::int64_t>(unused_gpus(numa, use).size());
    const int shared = users_of(least_used(numa.cores, cores, use), use);
    const bool whole = (oversubscribe ? numa.cores.size() : free) >= cores
                       && free_gpus >= static_cast<std::int64_t>(gpus);
    const auto spare = static_cast<std::int64_t>(free);
    if (whole) {
      order.push_back({{false, shared, free_gpus, spare}, &numa});
    } else {
      order.push_back({{true, 0, gpus > 0 ? -free_gpus : 0, -spare}, &numa});
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Candidate& a, const Candidate& b) { return a.rank < b.rank; });
  CoreChoice choice;
  CoreSet near;
  const bool one = !order.empty() && !std::get<0>(order.front().rank);
  for (const Candidate& candidate : order) {
    for (const int gpu : unused_gpus(*candidate.numa, use)) {
      if (choice.gpus.size() < gpus) {
        choice.gpus.push_back(gpu);
      }
    }
    if (!one || candidate.numa == order.front().numa) {
      near.insert(near.end(), candidate.numa->cores.begin(), candidate.numa->cores.end());
    }
  }
  choice.cores = least_used(near, cores, use);
  std::sort(choice.cores.begin(), choice.cores.end());
  std::sort(choice.gpus.begin(), choice.gpus.end());
  return choice;
}

} // namespace troupe::actors
