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
#include "tests/fuzz_seeds.hpp"

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

std::vector<std::string> troupe::fuzz_seeds() {
  const auto for_parser = [](char parser, const char* text) { return parser + std::string(text); };
  return {
      for_parser(0, "r[1-2]c[0-1]-ib,n[098-101],m4"),
      for_parser(1, "2(x3),1"),
      for_parser(2, R"({"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]},)"
                    R"( "task": {"type": "worker", "index": 1}})"),
      for_parser(3, "# two machines\n10.0.0.1:29500 slots=2\n\n10.0.0.2 slots=3 # new\n"),
      for_parser(4, "RANK=1\nWORLD_SIZE=4\nLOCAL_RANK=1\nLOCAL_WORLD_SIZE=2\n"
                    "MASTER_ADDR=10.0.0.1\nMASTER_PORT=4242\n"),
      for_parser(4,
                 "SLURM_PROCID=4\nSLURM_NTASKS=5\nSLURM_LOCALID=0\nSLURM_NODEID=2\nSLURM_NNODES=3\n"
                 "SLURM_STEP_ID=0\nSLURM_JOB_ID=4711\nSLURM_TASKS_PER_NODE=2(x2),1\n"
                 "SLURM_JOB_NODELIST=n[1-2],m4\n"),
      for_parser(5, "[::1]:4242"),
  };
}

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
