#include <doctest/doctest.h>

#include <google/protobuf/util/message_differencer.h>

#include <fstream>
#include <sstream>

#include "experiments/cluster/cluster.hpp"
#include "experiments/config/config.hpp"
#include "tests/experiments/mutated.hpp"
#include "tests/folders.hpp"

using namespace troupe;
using namespace troupe::experiments;

TEST_CASE("A mutated cluster file is either parsed completely or refused with a ConfigError") {
  const Experiment experiment =
      parse_experiment("environment { task: \"cartpole_balance\" }", "experiment.textproto");
  const actors::NodeResources here{
      .name = "here", .numa = {{.cores = {0, 1, 2, 3}}}, .memory_bytes = std::int64_t{1} << 34};
  env::Random random(13);
  int refused = 0, read = 0, placed = 0;
  for (const char* name : {"kubernetes", "laptop", "mpi", "slurm", "ssh"}) {
    std::ostringstream original;
    original << std::ifstream(in_source("experiments/clusters/") + name + ".textproto").rdbuf();
    REQUIRE(original.str().size() > 50);
    for (int i = 0; i < 800; ++i) {
      const std::string text = mutated(original.str(), random);
      CAPTURE(text);
      try {
        const Cluster cluster = parse_cluster(text, "fuzz.textproto");
        ++read;
        const Cluster again = parse_cluster(resolved_text(cluster), "fuzz.textproto");
        CHECK(google::protobuf::util::MessageDifferencer::Equals(cluster, again));
        auto placer = make_placer(cluster, experiment, here);
        placed += placer.place_all(role_counts(experiment)).empty() ? 1 : 0;
      } catch (const ConfigError& error) {
        REQUIRE_FALSE(error.complaints().empty());
        ++refused;
      }
    }
  }
  CHECK(refused > 100); // some edits break the rules,
  CHECK(read > 100);    // some are harmless,
  CHECK(placed > 100);  // and some leave a cluster that can be used
}
