#include "actors/supervision/node_info.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace troupe::actors {

namespace {

constexpr std::size_t kMostNameBytes = 253; // as for a host name
constexpr int kMostParts = 1024;
constexpr std::size_t kMostProcessors = 65536; // a few bytes can name this many

/// Accepts letters, digits and the other characters of host names and addresses. Nothing may begin
/// with a dot, because a name may become a file name.
void check_text(const std::string& text, const std::string& what) {
  const bool good =
      !text.empty() && text.size() <= kMostNameBytes && text.front() != '.'
      && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '.' || c == ':' || c == '_';
         });
  if (!good)
    throw std::invalid_argument(
        what + " of a node must be 1 to " + std::to_string(kMostNameBytes)
        + " letters, digits and - . : _, not starting with a dot (--name, --address)");
}

} // namespace

wire::NodeInfo node_info(const NodeResources& node, std::uint64_t life) {
  wire::NodeInfo info;
  info.set_name(node.name);
  info.set_address(node.address);
  for (const auto& part : node.numa) {
    auto& numa = *info.add_numa();
    numa.set_cores(core_set_text(part.cores));
    numa.mutable_gpus()->Assign(part.gpus.begin(), part.gpus.end());
  }
  info.set_memory_bytes(node.memory_bytes);
  info.mutable_labels()->insert(node.labels.begin(), node.labels.end());
  info.set_life(life);
  info.set_shares_cores(node.shares_cores);
  return info;
}

NodeResources node_resources(const wire::NodeInfo& info) {
  check_text(info.name(), "the name");
  check_text(info.address(), "the address");
  const auto refuse = [&] {
    throw std::invalid_argument("node \"" + info.name() + "\" reports resources that no host has");
  };
  if (info.numa_size() > kMostParts || info.labels_size() > kMostParts || info.memory_bytes() < 0
      || static_cast<std::size_t>(info.living_size()) > kMostProcessors)
    refuse();
  NodeResources node{.name = info.name(),
                     .address = info.address(),
                     .memory_bytes = info.memory_bytes(),
                     .labels = {info.labels().begin(), info.labels().end()},
                     .shares_cores = info.shares_cores()};
  std::size_t processors = 0;
  for (const auto& part : info.numa()) {
    node.numa.push_back({.cores = part.cores().empty() ? CoreSet() : parse_core_set(part.cores()),
                         .gpus = {part.gpus().begin(), part.gpus().end()}});
    processors += node.numa.back().cores.size() + node.numa.back().gpus.size();
    if (processors > kMostProcessors)
      refuse();
  }
  return node;
}

} // namespace troupe::actors
