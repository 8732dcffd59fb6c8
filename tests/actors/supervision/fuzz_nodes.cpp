// libFuzzer target of the messages that a node sends its head, up to the placement of roles.
#include <cstddef>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>

#include "actors/placement/placer.hpp"
#include "actors/protocol/messages.pb.h"
#include "actors/supervision/node_info.hpp"
#include "tests/fuzz_seeds.hpp"

std::vector<std::string> troupe::fuzz_seeds() {
  using namespace troupe::actors;
  const NodeResources node{.name = "node-1",
                           .address = "10.0.0.1",
                           .numa = {{.cores = {0, 1, 2, 8}, .gpus = {0}}, {.cores = {4, 5}}},
                           .memory_bytes = std::int64_t{1} << 34,
                           .labels = {{"disk", "fast"}}};
  wire::NodeInfo orphan = node_info(node, 5);
  orphan.set_epoch(7);
  auto& process = *orphan.add_living();
  process.mutable_life()->set_role("environment");
  process.set_cores("0-1");
  return {node_info({.name = "a", .numa = {{.cores = {0}}}}, 1).SerializeAsString(),
          orphan.SerializeAsString()};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::actors;
  wire::NodeInfo told;
  if (!told.ParseFromArray(data, static_cast<int>(size)))
    return 0;
  try {
    const NodeResources node = node_resources(told);
    if (node.name.find('/') != std::string::npos || node.name.front() == '.'
        || cores_of(node).size() > 65536)
      __builtin_trap();
    if (node_info(node_resources(node_info(node, 1)), 1).name() != told.name())
      __builtin_trap();
    Placer placer({{"learner", {.cores = 2, .gpus = 1}}, {"environment", {.cores = 1}}});
    placer.add_node(node);
    std::set<int> cores;
    for (int i = 0; i < 4; ++i)
      if (const auto placing = placer.place("environment", i))
        for (const int core : placing.at->cores)
          if (!cores.insert(core).second)
            __builtin_trap(); // assigned twice
    placer.place("learner", 0);
    placer.remove_node(node.name);
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
