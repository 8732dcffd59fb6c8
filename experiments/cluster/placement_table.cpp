#include "experiments/cluster/placement_table.hpp"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

namespace troupe::experiments {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

/// Aligns rows below their heading; each column is as wide as its widest cell.
std::string columns(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string out;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += (i == 0 ? "" : "  ") + row[i] + std::string(widths[i] - row[i].size(), ' ');
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

/// "-" for an empty text.
std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string memory_text(std::int64_t bytes) {
  return bytes > 0 ? actors::bytes_text(bytes) : "-";
}

} // namespace

std::string placement_table(const actors::Placer& placer) {
  std::vector<Row> placed = {{"role", "index", "node", "cores", "gpu", "memory"}};
  for (const auto& [who, at] : placer.assignments()) {
    const bool known = placer.free(at.node).known;
    placed.push_back({who.first, std::to_string(who.second), at.node,
                      known ? or_dash(actors::core_set_text(at.cores)) : "?",
                      known ? or_dash(actors::core_set_text(at.gpus)) : "?",
                      memory_text(at.memory_bytes)});
  }
  std::vector<Row> left = {{"free on", "cores", "gpu", "memory"}};
  for (const std::string& name : placer.nodes()) {
    const auto node = placer.free(name);
    left.push_back({name, node.known ? or_dash(actors::core_set_text(actors::cores_of(node))) : "?",
                    node.known ? or_dash(actors::core_set_text(actors::gpus_of(node))) : "?",
                    memory_text(node.memory_bytes)});
  }
  return columns(placed) + "\n" + columns(left);
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
