#include "experiments/cluster/cluster_environment.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "env/random.hpp"
#include "experiments/cluster/cluster.hpp"
#include "experiments/config/config.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;

namespace {

using Values = std::map<std::string, std::string>;

Variables of(const Values& values) {
  return [values](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

std::string complaint(const Values& values, const std::string& source = "auto") {
  return error_of<std::invalid_argument>([&] { cluster_from_environment(of(values), source); });
}

const std::string kHosts =
    R"("chief": ["10.0.0.1:2222"], "worker": ["10.0.0.2:2222", "10.0.0.3:2222"],
  "ps": ["10.0.0.4:2222"], "evaluator": ["10.0.0.5:2222"])";

std::string tf_config(const std::string& type, int index, const std::string& hosts = kHosts) {
  return "{\"cluster\": {" + hosts + "}, \"task\": {\"type\": \"" + type
         + "\", \"index\": " + std::to_string(index) + "}}";
}

/// Where the actors of an experiment with a parameter server are placed.
std::map<std::string, std::string> places(const Cluster& cluster, const std::string& strategy) {
  auto overrides = cluster_overrides(cluster);
  overrides.push_back("learner.strategy=" + strategy);
  overrides.push_back("d4pg.batch_size=240");
  const Experiment what =
      parse_experiment("environment { task: \"cartpole_balance\" }", "e.textproto", overrides);
  actors::Placer placer = make_placer(cluster, what, {});
  CHECK(placer.place_all(role_counts(what)) == "");
  std::map<std::string, std::string> out;
  for (const auto& [who, at] : placer.assignments())
    out[who.first + " " + std::to_string(who.second)] = at.node;
  return out;
}

} // namespace

TEST_CASE("TF_CONFIG describes a cluster with one node per task and the learners, servers and "
          "evaluator on theirs") {
  const auto found =
      cluster_from_environment(of({{"TF_CONFIG", tf_config("worker", 1)}, {"TROUPE_KEYS", "/k"}}));
  REQUIRE(found.has_value());
  CHECK(found->node == "worker-1");
  CHECK_FALSE(found->head);
  CHECK(launcher_of(found->cluster) == LauncherKind::none);
  CHECK(found->cluster.head().node() == "chief");
  CHECK(found->cluster.head().listen() == "0.0.0.0:2222");
  CHECK(head_endpoint(found->cluster, true).host == "10.0.0.1");
  CHECK(found->cluster.keys() == "/k");
  auto at = places(found->cluster, "parameter_server");
  CHECK(at["head 0"] == "chief");
  CHECK(at["parameter_server 0"] == "ps-0");
  CHECK(at["evaluator 0"] == "evaluator-0");
  CHECK(std::set<std::string>{at["learner 0"], at["learner 1"], at["learner 2"]}
        == std::set<std::string>{"chief", "worker-0", "worker-1"});
  CHECK(cluster_from_environment(of({{"TF_CONFIG", tf_config("chief", 0)}, {"TROUPE_KEYS", "/k"}}))
            ->head);
}

TEST_CASE(
    "Without a chief, worker 0 hosts the head, which needs no keys on the loopback interface") {
  const std::string hosts = R"("worker": ["localhost:5001", "localhost:5002"])";
  const auto found = cluster_from_environment(of({{"TF_CONFIG", tf_config("worker", 0, hosts)}}));
  REQUIRE(found.has_value());
  CHECK(found->head);
  CHECK(found->cluster.head().node() == "worker-0");
  CHECK(found->cluster.head().listen() == "localhost:5001");
  CHECK(places(found->cluster, "multi_worker")["learner 1"] == "worker-1");
  // The cluster file need not list an evaluator.
  const auto evaluator =
      cluster_from_environment(of({{"TF_CONFIG", tf_config("evaluator", 0, hosts)}}));
  CHECK(evaluator->node == "evaluator-0");
  CHECK(places(evaluator->cluster, "multi_worker")["evaluator 0"] == "evaluator-0");
}

TEST_CASE("torchrun's variables describe a cluster with one node and one learner per rank") {
  const Values values = {{"RANK", "3"},
                         {"WORLD_SIZE", "4"},
                         {"LOCAL_RANK", "1"},
                         {"LOCAL_WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "10.0.0.7"},
                         {"MASTER_PORT", "29500"},
                         {"TROUPE_KEYS", "/k"}};
  const auto found = cluster_from_environment(of(values));
  REQUIRE(found.has_value());
  CHECK(found->node == "rank-3");
  CHECK_FALSE(found->head);
  CHECK(head_endpoint(found->cluster, true).host == "10.0.0.7");
  CHECK(head_endpoint(found->cluster, true).port == 29501);
  auto at = places(found->cluster, "multi_worker");
  CHECK(at["head 0"] == "rank-0");
  CHECK(std::set<std::string>{at["learner 0"], at["learner 1"], at["learner 2"], at["learner 3"]}
            .size()
        == 4);
  Values alone = {
      {"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
  const auto one = cluster_from_environment(of(alone));
  CHECK(one->node == "rank-0");
  CHECK(one->head);
  CHECK(one->cluster.head().listen() == "127.0.0.1:29501");
}

TEST_CASE("An invalid environment variable is refused, and the error names the variable") {
  CHECK_FALSE(cluster_from_environment(of({})).has_value());
  CHECK(has(complaint({}, "tf_config"), "TF_CONFIG is not set"));
  CHECK(has(complaint({}, "torchrun"), "RANK is not set"));
  CHECK(has(complaint({{"TF_CONFIG", "{"}}), "TF_CONFIG"));
  CHECK(has(complaint({{"TF_CONFIG", tf_config("worker", 2)}}), "TF_CONFIG task.index"));
  CHECK(has(complaint({{"TF_CONFIG", tf_config("chief", 0)}}),
            "TF_CONFIG: keys is empty and head.listen is 0.0.0.0:2222"));
  CHECK(has(complaint({{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
            "MASTER_ADDR and MASTER_PORT are not set"));
  CHECK(
      has(complaint(
              {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "65535"}}),
          "MASTER_PORT is \"65535\""));
  CHECK(has(complaint({{"RANK", "4"}, {"WORLD_SIZE", "2"}}), "RANK is \"4\""));
}

TEST_CASE("A mutated TF_CONFIG is either read or refused with std::invalid_argument") {
  env::Random random(5);
  const auto below = [&](std::size_t limit) {
    return static_cast<std::size_t>(random.bits() % limit);
  };
  int refused = 0, read = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = tf_config("worker", 1);
    for (std::size_t edits = below(3); edits > 0; --edits) {
      const std::size_t at = below(text.size());
      if (below(2) == 0)
        text[at] = static_cast<char>(random.bits());
      else
        text.erase(at, below(12));
    }
    CAPTURE(text);
    try {
      cluster_from_environment(of({{"TF_CONFIG", text}, {"TROUPE_KEYS", "/k"}}));
      ++read;
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  }
  CHECK(refused > 100);
  CHECK(read > 100);
}
