#include "actors/placement/role_needs.hpp"

#include <algorithm>
#include <stdexcept>

#include "actors/placement/node_resources.hpp"
#include "env/text/joined.hpp"

namespace troupe::actors {
namespace {

bool contains_name(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_role(const std::string& role, const RoleNeeds& needs,
                const std::map<std::string, RoleNeeds>& roles) {
  if (needs.cores < 0 || needs.gpus < 0 || needs.memory_bytes < 0) {
    throw std::invalid_argument(
        role + " needs a negative number of cores, GPUs or bytes; give 0 or more");
  }
  for (const auto* rule : {&needs.together, &needs.apart}) {
    for (const std::string& other : *rule) {
      if (!roles.contains(other)) {
        throw std::invalid_argument(role + " has a rule about " + other
                                    + ", but there is no such role; leave the rule out");
      }
    }
  }
  if (contains_name(needs.together, role)) {
    throw std::invalid_argument(role + " must be together with itself; pack it instead");
  }
  for (const std::string& other : needs.together) {
    if (contains_name(needs.apart, other) || contains_name(roles.at(other).apart, role)) {
      throw std::invalid_argument(role + " must be together with " + other
                                  + " and apart from it; leave one of the rules out");
    }
  }
}

} // namespace

std::string counted(std::size_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

std::string needs_text(const RoleNeeds& needs) {
  std::vector<std::string> parts;
  if (needs.cores > 0) {
    parts.push_back(counted(static_cast<std::size_t>(needs.cores), "core"));
  }
  if (needs.gpus > 0) {
    parts.push_back(counted(static_cast<std::size_t>(needs.gpus), "GPU"));
  }
  if (needs.memory_bytes > 0) {
    parts.push_back(bytes_text(needs.memory_bytes) + " of memory");
  }
  std::string out = parts.empty() ? "a place" : env::joined(parts, " and ");
  if (needs.on_gpu_node) {
    out += ", on a node with GPUs";
  }
  for (const auto& [key, value] : needs.on_labels) {
    out += ", on a node labelled " + key + "=" + value;
  }
  if (!needs.on_nodes.empty()) {
    out += ", on " + env::joined(needs.on_nodes, " or ");
  }
  if (!needs.together.empty()) {
    out += ", together with " + env::joined(needs.together, " and ");
  }
  return out + (needs.apart.empty() ? "" : ", apart from " + env::joined(needs.apart, " and "));
}

void check_needs(const std::map<std::string, RoleNeeds>& roles) {
  for (const auto& [role, needs] : roles) {
    check_role(role, needs, roles);
  }
}

} // namespace troupe::actors
