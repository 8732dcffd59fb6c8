// libFuzzer target of the parsers of cluster descriptions. The first byte selects the parser.
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "collectives/rendezvous/cluster_spec.hpp"
#include "collectives/rendezvous/node_list.hpp"
#include "collectives/rendezvous/process_topology.hpp"

namespace {

/// Finds the place of a process from lines of NAME=VALUE. The same lines are the content of every
/// file.
void place_from_lines(std::string_view text) {
  std::map<std::string, std::string> variables;
  for (auto rest = text; !rest.empty();) {
    const auto line = rest.substr(0, rest.find('\n'));
    const auto equals = line.find('=');
    if (equals != std::string_view::npos)
      variables[std::string(line.substr(0, equals))] = line.substr(equals + 1);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  const auto place = troupe::collectives::topology_from(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      [&](const std::string&) { return std::string(text); });
  if (place.role != "evaluator" && place.role != "ps"
      && (place.rank < 0 || place.rank >= place.size))
    __builtin_trap();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::collectives;
  if (size == 0)
    return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    switch (data[0] % 6) {
    case 0:
      expand_node_list(text);
      break;
    case 1:
      expand_task_counts(text);
      break;
    case 2:
      parse_tf_config(text);
      break;
    case 3:
      parse_host_file(text);
      break;
    case 4:
      place_from_lines(text);
      break;
    default:
      parse_endpoint(text);
    }
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
