#include "experiments/cluster/placement_table.hpp"

#include <nlohmann/json.hpp>

#include "experiments/report/text_table.hpp"

namespace troupe::experiments {
namespace {

using Json = nlohmann::ordered_json;

/// "-" for an empty text.
std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string memory_text(std::int64_t bytes) {
  return bytes > 0 ? actors::bytes_text(bytes) : "-";
}

} // namespace

std::string placement_table(const actors::Placer& placer) {
  std::vector<TextRow> placed = {{"role", "index", "node", "cores", "gpu", "memory"}};
  for (const auto& [who, at] : placer.assignments()) {
    const bool known = placer.free(at.node).known;
    placed.push_back({who.first, std::to_string(who.second), at.node,
                      known ? or_dash(actors::core_set_text(at.cores)) : "?",
                      known ? or_dash(actors::core_set_text(at.gpus)) : "?",
                      memory_text(at.memory_bytes)});
  }
  std::vector<TextRow> left = {{"free on", "cores", "gpu", "memory"}};
  for (const std::string& name : placer.nodes()) {
    const auto node = placer.free(name);
    left.push_back({name, node.known ? or_dash(actors::core_set_text(actors::cores_of(node))) : "?",
                    node.known ? or_dash(actors::core_set_text(actors::gpus_of(node))) : "?",
                    memory_text(node.memory_bytes)});
  }
  return text_table(placed) + "\n" + text_table(left);
}

Json placement_json(const actors::Placer& placer) {
  Json placed = Json::array();
  for (const auto& [who, at] : placer.assignments()) {
    placed.push_back({{"role", who.first},
                      {"index", who.second},
                      {"node", at.node},
                      {"cores", actors::core_set_text(at.cores)},
                      {"gpus", at.gpus},
                      {"memory_bytes", at.memory_bytes}});
  }
  Json left = Json::array();
  for (const std::string& name : placer.nodes()) {
    const auto node = placer.free(name);
    left.push_back({{"node", name},
                    {"address", node.address},
                    {"cores", actors::core_set_text(actors::cores_of(node))},
                    {"gpus", actors::gpus_of(node)},
                    {"memory_bytes", node.memory_bytes},
                    {"known", node.known}});
  }
  return {{"placement", placed}, {"free", left}};
}

} // namespace troupe::experiments
