// libFuzzer target of cluster files, up to the placement of roles.
#include <cstddef>
#include <cstdint>
#include <string>

#include <google/protobuf/util/message_differencer.h>

#include "experiments/cluster/cluster.hpp"
#include "experiments/config/config.hpp"
#include "tests/fuzz_seeds.hpp"

std::vector<std::string> troupe::fuzz_seeds() {
  return {
      "node { name: \"gpu\" address: \"10.0.0.10\" memory_bytes: 270000000000 label: \"zone=a\"\n"
      "  numa { cores: \"0-15\" gpu: [0, 1] }\n  numa { cores: \"16-31\" gpu: [2, 3] } }\n"
      "node { name: \"cpu\" count: 3 address: \"10.0.0.[11-13]\" cores: 16 }\n"
      "ssh { user: \"troupe\" known_hosts: \"known_hosts\" identity_file: \"id_ed25519\" }\n"
      "head { listen: \"10.0.0.1:4242\" }\nkeys: \"keys\"\nruns: \"/shared/runs\"\n"
      "role { name: \"replay\" count: 3 memory_bytes: 20000000 apart: \"replay\" on_node: \"cpu\" "
      "}\n"
      "role { name: \"environment\" count: 4 together: \"replay\" }\n"
      "role { name: \"evaluator\" on_label: \"zone=a\" }",
      "local {}\nnode { name: \"a\" cores: 2 }\nnode { name: \"b\" cores: 2 }\n"
      "role { name: \"environment\" count: 2 apart: \"environment\" cores: 1 }",
      ""};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  using namespace troupe::experiments;
  static const Experiment experiment =
      parse_experiment("environment { task: \"cartpole_balance\" }", "experiment.textproto");
  const actors::NodeResources here{
      .name = "here", .numa = {{.cores = {0, 1, 2, 3}}}, .memory_bytes = std::int64_t{1} << 34};
  try {
    const Cluster read =
        parse_cluster(std::string(reinterpret_cast<const char*>(data), size), "fuzz.textproto");
    const Cluster again = parse_cluster(resolved_text(read), "again.textproto");
    if (!google::protobuf::util::MessageDifferencer::Equals(read, again))
      __builtin_trap();
    make_placer(read, experiment, here).place_all(role_counts(experiment));
  } catch (const ConfigError& error) {
    if (error.complaints().empty() || std::string_view(error.what()).starts_with("again"))
      __builtin_trap();
  }
  return 0;
}
