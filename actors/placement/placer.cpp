#include "actors/placement/placer.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "env/text/joined.hpp"

namespace troupe::actors {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

double ratio(auto part, auto whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

/// Counts a broken rule or a missing resource; describes it only if `all` is set.
template <class Words>
void note(int& count, std::vector<std::string>* all, const Words& words) {
  ++count;
  if (all != nullptr) {
    all->push_back(words());
  }
}

} // namespace

Placer::Placer(std::map<std::string, RoleNeeds> roles, bool oversubscribe)
    : roles_(std::move(roles)), oversubscribe_(oversubscribe) {
  check_needs(roles_);
}

std::vector<Placer::Node>::iterator Placer::node_named(const std::string& name) {
  return std::find_if(nodes_.begin(), nodes_.end(),
                      [&](const Node& node) { return node.resources.name == name; });
}

void Placer::add_node(NodeResources resources) {
  if (resources.name.empty() || node_named(resources.name) != nodes_.end()) {
    throw std::invalid_argument("node \"" + resources.name
                                + "\" already exists or has no name; give each a different name");
  }
  Node node{.resources = std::move(resources)};
  for (const int core : cores_of(node.resources)) {
    if (!node.use.users.emplace(core, 0).second) {
      throw std::invalid_argument("node " + node.resources.name + " lists core "
                                  + std::to_string(core) + " twice; list each once");
    }
  }
  const auto gpus = gpus_of(node.resources);
  if (std::adjacent_find(gpus.begin(), gpus.end()) != gpus.end()) {
    throw std::invalid_argument("node " + node.resources.name
                                + " lists a GPU twice; list each once");
  }
  node.free_cores = node.use.users.size();
  node.gpus = gpus.size();
  nodes_.push_back(std::move(node));
}

std::vector<RoleIndex> Placer::remove_node(const std::string& name) {
  std::vector<RoleIndex> homeless;
  std::erase_if(assignments_, [&](const auto& entry) {
    const bool there = entry.second.node == name;
    if (there) {
      homeless.push_back(entry.first);
    }
    return there;
  });
  std::erase_if(nodes_, [&](const Node& node) { return node.resources.name == name; });
  return homeless;
}

const RoleNeeds& Placer::needs_of(const std::string& role) const {
  const auto found = roles_.find(role);
  if (found == roles_.end()) {
    throw std::invalid_argument("there is no role \"" + role + "\" to place");
  }
  return found->second;
}

void Placer::broken_rules(const Node& node, const std::string& role, const RoleNeeds& needs,
                          Lack& lack) const {
  const NodeResources& resources = node.resources;
  if (!needs.on_nodes.empty() && !has(needs.on_nodes, resources.name)
      && !has(needs.on_nodes, resources.group)) {
    note(lack.rules, lack.words, [&] { return "is not " + env::joined(needs.on_nodes, " or "); });
  }
  for (const auto& [key, value] : needs.on_labels) {
    const auto label = resources.labels.find(key);
    if (label == resources.labels.end() || label->second != value) {
      note(lack.rules, lack.words,
           [&, &key = key, &value = value] { return "lacks the label " + key + "=" + value; });
    }
  }
  if (needs.on_gpu_node && node.gpus == 0 && resources.known) {
    note(lack.rules, lack.words, [&] { return std::string("has no GPUs"); });
  }
  for (const std::string& other : needs.together) {
    const auto elsewhere = assignments_.lower_bound({other, 0});
    const bool placed = elsewhere != assignments_.end() && elsewhere->first.first == other;
    if (placed && !node.roles.contains(other)) {
      note(lack.rules, lack.words, [&] { return "has no " + other; });
    }
  }
  for (const auto& [other, count] : node.roles) {
    if (has(needs.apart, other) || has(roles_.at(other).apart, role)) {
      note(lack.rules, lack.words,
           [&other = other] { return "has " + other + ", which it must be apart from"; });
    }
  }
}

void Placer::missing_resources(const Node& node, const RoleNeeds& needs, Lack& lack) const {
  if (!node.resources.known) {
    return;
  }
  const std::size_t total = node.use.users.size();
  const std::size_t free = node.free_cores;
  const auto cores = static_cast<std::size_t>(needs.cores);
  if (cores > 0 && (oversubscribe_ ? total == 0 : free < cores)) {
    note(lack.resources, lack.words,
         [&] { return "has " + std::to_string(free) + " of " + counted(total, "core") + " free"; });
  }
  const std::size_t gpus = node.gpus - node.use.gpus.size();
  if (gpus < static_cast<std::size_t>(needs.gpus)) {
    note(lack.resources, lack.words, [&] {
      return "has " + std::to_string(gpus) + " of " + counted(node.gpus, "GPU") + " free";
    });
  }
  const std::int64_t bytes = node.resources.memory_bytes;
  if (needs.memory_bytes > 0 && bytes > 0 && bytes - node.use.memory_bytes < needs.memory_bytes) {
    note(lack.resources, lack.words, [&] {
      return "has " + bytes_text(std::max<std::int64_t>(0, bytes - node.use.memory_bytes)) + " of "
             + bytes_text(bytes) + " of memory free";
    });
  }
}

Placer::Node* Placer::best_node(const std::string& role, bool pack) {
  const RoleNeeds& needs = needs_of(role);
  using Rank = std::tuple<bool, int, double>;
  Node* best = nullptr;
  Rank least;
  for (Node& node : nodes_) {
    Lack lack;
    broken_rules(node, role, needs, lack);
    missing_resources(node, needs, lack);
    if (lack.rules + lack.resources > 0) {
      continue;
    }
    const bool wastes = needs.gpus == 0 && node.use.gpus.size() < node.gpus;
    const auto like = node.roles.find(role);
    const int alike = like == node.roles.end() ? 0 : like->second;
    double used = node.use.users.empty() ? 0 : ratio(node.users, node.use.users.size());
    if (node.resources.memory_bytes > 0) {
      used = std::max(used, ratio(node.use.memory_bytes, node.resources.memory_bytes));
    }
    const Rank rank = pack ? Rank{wastes, -alike, -used} : Rank{wastes, alike, used};
    if (best == nullptr || rank < least) {
      best = &node;
      least = rank;
    }
  }
  return best;
}

Placing Placer::put(const RoleIndex& who, bool pack) {
  if (const Assignment* already = find(who.first, who.second)) {
    return {.at = *already};
  }
  const RoleNeeds& needs = needs_of(who.first);
  Node* node = best_node(who.first, pack);
  if (node == nullptr) {
    return {.problem = problem(who)};
  }
  auto choice = choose_cores(node->resources, node->use, static_cast<std::size_t>(needs.cores),
                             static_cast<std::size_t>(needs.gpus), oversubscribe_);
  Assignment at{.node = node->resources.name,
                .cores = std::move(choice.cores),
                .gpus = std::move(choice.gpus),
                .memory_bytes = needs.memory_bytes};
  assign(who, *node, at);
  return {.at = std::move(at)};
}

void Placer::assign(const RoleIndex& who, Node& node, Assignment at) {
  for (const int core : at.cores) {
    node.free_cores -= node.use.users.at(core)++ == 0 ? 1U : 0U;
    ++node.users;
  }
  node.use.gpus.insert(at.gpus.begin(), at.gpus.end());
  node.use.memory_bytes += at.memory_bytes;
  ++node.roles[who.first];
  assignments_[who] = std::move(at);
}

std::string Placer::restore(const std::string& role, int index, const std::string& name,
                            const CoreSet& cores, const std::vector<int>& gpus) {
  const RoleNeeds& needs = needs_of(role);
  const auto node = node_named(name);
  if (node == nodes_.end()) {
    return "there is no node " + name;
  }
  release(role, index);
  for (const int core : cores) {
    const auto users = node->use.users.find(core);
    if (users == node->use.users.end() || (users->second > 0 && !oversubscribe_)) {
      return "core " + std::to_string(core) + " of node " + name + " is not free";
    }
  }
  CoreSet chosen = cores;
  if (cores.empty()) { // the process was not pinned
    chosen = choose_cores(node->resources, node->use, static_cast<std::size_t>(needs.cores), 0,
                          oversubscribe_)
                 .cores;
  }
  const auto known = gpus_of(node->resources);
  for (const int gpu : gpus) {
    if (std::find(known.begin(), known.end(), gpu) == known.end() || node->use.gpus.contains(gpu)) {
      return "GPU " + std::to_string(gpu) + " of node " + name + " is not free";
    }
  }
  assign(
      {role, index}, *node,
      {.node = name, .cores = std::move(chosen), .gpus = gpus, .memory_bytes = needs.memory_bytes});
  return "";
}

Placing Placer::place(const std::string& role, int index) {
  if (index < 0) {
    throw std::invalid_argument(role + " " + std::to_string(index)
                                + " cannot be placed; the index must be at least 0");
  }
  return put({role, index}, needs_of(role).pack);
}

void Placer::release(const std::string& role, int index) {
  const auto found = assignments_.find({role, index});
  if (found == assignments_.end()) {
    return;
  }
  const auto node = node_named(found->second.node);
  for (const int core : found->second.cores) {
    node->free_cores += --node->use.users.at(core) == 0 ? 1U : 0U;
    --node->users;
  }
  for (const int gpu : found->second.gpus) {
    node->use.gpus.erase(gpu);
  }
  node->use.memory_bytes -= found->second.memory_bytes;
  if (--node->roles.at(role) == 0) {
    node->roles.erase(role);
  }
  assignments_.erase(found);
}

const Assignment* Placer::find(const std::string& role, int index) const {
  const auto found = assignments_.find({role, index});
  return found == assignments_.end() ? nullptr : &found->second;
}

std::vector<RoleIndex> Placer::hardest_first(const std::map<std::string, int>& counts) const {
  using Difficulty = std::tuple<int, bool, std::size_t, int, std::int64_t>;
  const auto difficulty = [&](const std::string& role) {
    const RoleNeeds& needs = needs_of(role);
    const std::size_t rules =
        needs.on_labels.size() + needs.apart.size() + (needs.on_gpu_node ? 1U : 0U);
    return Difficulty{needs.gpus, !needs.on_nodes.empty(), rules, needs.cores, needs.memory_bytes};
  };
  std::vector<std::string> roles;
  for (const auto& [role, count] : counts) {
    roles.push_back(role);
  }
  std::stable_sort(roles.begin(), roles.end(), [&](const std::string& a, const std::string& b) {
    return difficulty(a) > difficulty(b);
  });
  std::vector<RoleIndex> order;
  std::vector<std::string> seen;
  const std::function<void(const std::string&)> add = [&](const std::string& role) {
    if (has(seen, role) || !counts.contains(role)) {
      return;
    }
    seen.push_back(role);
    for (const std::string& other : needs_of(role).together) {
      add(other); // place the roles that share its node first
    }
    for (int index = 0; index < counts.at(role); ++index) {
      order.emplace_back(role, index);
    }
  };
  for (const std::string& role : roles) {
    add(role);
  }
  return order;
}

std::string Placer::put_all(const std::vector<RoleIndex>& order, bool pack) {
  std::vector<RoleIndex> placed;
  for (const RoleIndex& who : order) {
    if (find(who.first, who.second) != nullptr) {
      continue;
    }
    Placing placing = put(who, pack || needs_of(who.first).pack);
    if (!placing) {
      for (const RoleIndex& undone : placed) {
        release(undone.first, undone.second);
      }
      return placing.problem;
    }
    placed.push_back(who);
  }
  return "";
}

std::string Placer::place_all(const std::map<std::string, int>& counts) {
  const auto order = hardest_first(counts);
  const std::string problem = put_all(order, false);
  return problem.empty() || put_all(order, true).empty() ? "" : problem;
}

std::string Placer::problem(const RoleIndex& who) const {
  const RoleNeeds& needs = needs_of(who.first);
  const std::string asked =
      who.first + " " + std::to_string(who.second) + " needs " + needs_text(needs) + "; ";
  if (nodes_.empty()) {
    return asked + "there is no node yet; start one";
  }
  const Node* nearest = nullptr;
  std::pair<int, int> least;
  std::vector<std::string> words;
  for (const Node& node : nodes_) {
    Lack lack;
    std::vector<std::string> here;
    lack.words = &here;
    broken_rules(node, who.first, needs, lack);
    missing_resources(node, needs, lack);
    const std::pair rank{lack.rules, lack.resources};
    if (nearest == nullptr || rank < least) {
      nearest = &node;
      least = rank;
      words = std::move(here);
    }
  }
  const bool cores = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.find(" core") != std::string::npos;
  });
  return asked + (nodes_.size() == 1 ? "the only node, " : "no node has that: the nearest, ")
         + nearest->resources.name + ", " + env::joined(words, " and ") + "; add nodes, "
         + (cores && !oversubscribe_ ? "set oversubscribe: true, " : "")
         + "or change role { name: \"" + who.first + "\" … } in the cluster file";
}

NodeResources Placer::free(const std::string& name) const {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                  [&](const Node& node) { return node.resources.name == name; });
  if (found == nodes_.end()) {
    throw std::invalid_argument("there is no node \"" + name + "\"");
  }
  NodeResources left = found->resources;
  for (NumaNode& numa : left.numa) {
    std::erase_if(numa.cores, [&](int core) { return found->use.users.at(core) > 0; });
    std::erase_if(numa.gpus, [&](int gpu) { return found->use.gpus.contains(gpu); });
  }
  left.memory_bytes = left.memory_bytes == 0
                          ? 0
                          : std::max<std::int64_t>(0, left.memory_bytes - found->use.memory_bytes);
  return left;
}

std::vector<std::string> Placer::nodes() const {
  std::vector<std::string> names;
  for (const Node& node : nodes_) {
    names.push_back(node.resources.name);
  }
  return names;
}

} // namespace troupe::actors
