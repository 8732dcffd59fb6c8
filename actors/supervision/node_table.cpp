#include "actors/supervision/node_table.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

/// Replaces the processors and GPUs that a node reports by its share in the cluster file.
void assign_resources(const NodeResources& given, NodeResources& node) {
  const auto cores = cores_of(given).size(), gpus = gpus_of(given).size();
  if (given.counts && cores_of(node).size() >= cores && gpus_of(node).size() >= gpus)
    return limit_resources(node, cores, gpus);
  node.numa = given.numa;
  node.shares_cores = given.shares_cores || given.counts; // it does not have that many
}

} // namespace

NodeTable::NodeTable(Placer placer, std::int64_t join_by, bool restores)
    : placer_(std::move(placer)), join_by_(join_by), restores_(restores) {
  for (const auto& name : placer_.nodes())
    given_[name] = placer_.free(name);
  known_ = given_;
}

void NodeTable::join(NodeResources node, std::uint64_t life, std::int64_t now) {
  if (const auto found = given_.find(node.name); found != given_.end()) {
    const NodeResources& given = found->second;
    if (given.known) {
      assign_resources(given, node);
      node.labels.clear();
    }
    if (given.known || given.memory_bytes > 0)
      node.memory_bytes = given.memory_bytes;
    for (const auto& [label, value] : given.labels)
      node.labels[label] = value;
    node.group = given.group;
  }
  const auto names = placer_.nodes();
  if (std::find(names.begin(), names.end(), node.name) != names.end())
    placer_.remove_node(node.name);
  placer_.add_node(node);
  up_[node.name] = {.life = life, .heard = now, .address = node.address};
  known_[node.name] = std::move(node);
}

bool NodeTable::beat(const std::string& name, std::uint64_t life, std::int64_t now) {
  const auto node = up_.find(name);
  if (node == up_.end() || node->second.life != life)
    return false;
  node->second.heard = now;
  return true;
}

std::vector<std::string> NodeTable::silent_since(std::int64_t tick) const {
  std::vector<std::string> silent;
  for (const auto& [name, node] : up_)
    if (node.heard < tick)
      silent.push_back(name);
  return silent;
}

bool NodeTable::remove(const std::string& name) {
  if (up_.erase(name) == 0)
    return false;
  placer_.remove_node(name);
  return true;
}

std::string NodeTable::place_all(const std::map<std::string, int>& counts, std::int64_t now) {
  if (placed_)
    return {};
  const auto expected = placer_.nodes();
  const auto missing = std::count_if(expected.begin(), expected.end(),
                                     [&](const auto& name) { return !up_.contains(name); });
  if (missing > 0 && now <= join_by_)
    return {};
  for (const auto& name : expected)
    if (!up_.contains(name))
      placer_.remove_node(name);
  placed_ = true;
  if (restores_)
    return {}; // a process may be alive even if its node has not joined
  const std::string problem = placer_.place_all(counts);
  if (problem.empty())
    return {};
  return std::to_string(missing) + " of " + std::to_string(expected.size())
         + " nodes are missing, and " + problem;
}

bool NodeTable::has_place(const std::string& role, int index) const {
  const auto* at = placer_.find(role, index);
  return at && up_.contains(at->node);
}

Placing NodeTable::place(const std::string& role, int index, int learners) {
  if (!placed_)
    return {.problem = "not all nodes have joined"};
  const Placing placing = placer_.place(role, index);
  if (!placing || !up_.contains(placing.at->node))
    return {.problem = placing.problem};
  if (role == "learner")
    for (int i = 0; i < learners; ++i) // each learner gets the places of the others when it starts
      if (!has_place(role, i))
        return {.problem = "learner " + std::to_string(i) + " has no place yet"};
  return placing;
}

std::string NodeTable::node_of(const std::string& role, int index) const {
  const auto* at = placer_.find(role, index);
  return at ? at->node : "";
}

std::string NodeTable::reserve(const std::string& role, int from, int to) {
  for (int index = from; index < to && placed_; ++index) {
    const Placing placing = placer_.place(role, index);
    if (placing)
      continue;
    for (int reserved = from; reserved < index; ++reserved)
      placer_.release(role, reserved);
    return "there is room for " + std::to_string(index) + " " + role
           + " actors: " + placing.problem;
  }
  return {};
}

} // namespace troupe::actors
