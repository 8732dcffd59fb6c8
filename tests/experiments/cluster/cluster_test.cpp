#include "experiments/cluster/cluster.hpp"

#include <doctest/doctest.h>

#include <google/protobuf/util/message_differencer.h>

#include "env/random.hpp"
#include "experiments/cluster/placement_table.hpp"
#include "experiments/config/config.hpp"
#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace fs = std::filesystem;

namespace {

const fs::path kClusters = in_source("experiments/clusters");

/// All error messages, one per line.
std::string complaints(const std::string& text) {
  std::string out;
  try {
    parse_cluster(text, "bad.textproto");
  } catch (const ConfigError& error) {
    for (const std::string& line : error.complaints())
      out += line + "\n";
  }
  return out;
}

const actors::NodeResources kHere = {
    .name = "me", .numa = {{.cores = {0, 1, 2, 3}, .gpus = {0}}}, .memory_bytes = 1 << 30};

Experiment experiment(const std::vector<std::string>& overrides = {}) {
  return parse_experiment("environment { task: \"cartpole_balance\" }", "e.textproto", overrides);
}

} // namespace

TEST_CASE("Every bundled cluster parses, shows how to launch it, and has room for its roles") {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(kClusters)) {
    CAPTURE(entry.path());
    const std::string name = entry.path().stem().string();
    CHECK(read_text(entry.path()).starts_with("# "));
    CHECK(has(read_text(entry.path()), "troupe launch " + name + " "));
    const Cluster cluster = load_cluster(entry.path());
    CHECK(cluster.name() == name);
    CHECK(std::string(launcher_name(launcher_of(cluster))) == (name == "laptop" ? "local" : name));
    const Experiment what = experiment(cluster_overrides(cluster));
    actors::Placer placer = make_placer(cluster, what, kHere);
    CHECK(placer.place_all(role_counts(what)) == "");
    CHECK(has(placement_table(placer), "evaluator"));
    // The resolved text parses back to the same cluster, also in another folder.
    const Cluster again = parse_cluster(resolved_text(cluster), "again.textproto");
    CHECK(google::protobuf::util::MessageDifferencer::Equals(cluster, again));
    ++count;
  }
  CHECK(count == 6);
}

TEST_CASE("A cluster's name is derived from its file name and is valid as a host and pod name") {
  CHECK(parse_cluster("local {}", "a/My_Cluster.v2.textproto").name() == "my-cluster-v2");
  CHECK(parse_cluster("local {}", "-.textproto").name() == "cluster");
  CHECK(parse_cluster("local {} name: \"x\"", "y").name() == "x");
  CHECK(parse_cluster("keys: \"k\" mpi { hostfile: \"h\" } node { name: \"a\" }", "some/c").keys()
        == "some/k");
}

TEST_CASE("Nodes take their resources from the file, or from this host where the file gives none") {
  const auto nodes = cluster_nodes(
      parse_cluster(R"(node { name: "a" count: 2 address: "h[08-09]" cores: 2 gpus: 1 label: "z=1"
                              memory_bytes: 5 }
                       node { name: "b" numa { cores: "0-1,8" gpu: 3 } numa { cores: "2" } }
                       node { name: "later" } head { listen: "h1:1" } keys: "k")",
                    "c"),
      kHere);
  REQUIRE(nodes.size() == 4);
  CHECK(nodes[0].name == "a-0");
  CHECK(nodes[1].name == "a-1");
  CHECK(nodes[1].group == "a");
  CHECK(nodes[1].address == "h09");
  CHECK(nodes[1].labels.at("z") == "1");
  CHECK(nodes[1].memory_bytes == 5);
  CHECK(actors::cores_of(nodes[1]) == actors::CoreSet{0, 1});
  CHECK(actors::gpus_of(nodes[1]) == std::vector<int>{0});
  REQUIRE(nodes[2].numa.size() == 2);
  CHECK(nodes[2].numa[0].cores == actors::CoreSet{0, 1, 8});
  CHECK(nodes[2].numa[0].gpus == std::vector<int>{3});
  CHECK(nodes[2].known);
  CHECK_FALSE(nodes[3].known);
  CHECK(nodes[0].counts); // which cores, it reports when it joins
  CHECK_FALSE(nodes[2].counts);
  const auto local = cluster_nodes(parse_cluster("local {}", "c"), kHere);
  REQUIRE(local.size() == 1);
  CHECK(local[0].name == "local");
  CHECK(local[0].address == "127.0.0.1");
  CHECK(actors::cores_of(local[0]).size() == 4);
  const auto part =
      cluster_nodes(parse_cluster("local {} node { name: \"a\" cores: 3 }", "c"), kHere);
  CHECK(actors::cores_of(part[0]) == actors::CoreSet{0, 1, 2});
  CHECK_FALSE(part[0].counts);
  // Nodes of one host get separate cores while there are enough.
  const auto two = cluster_nodes(
      parse_cluster("local {} node { name: \"a\" count: 2 cores: 2 } node { name: \"b\" cores: 1 }",
                    "c"),
      kHere);
  CHECK(actors::cores_of(two[0]) == actors::CoreSet{0, 1});
  CHECK(actors::cores_of(two[1]) == actors::CoreSet{2, 3});
  CHECK(actors::cores_of(two[2]) == actors::CoreSet{0});
  const auto all = cluster_nodes(parse_cluster("local {} node { name: \"a\" }", "c"), kHere);
  CHECK(actors::cores_of(all[0]).size() == 4);
  CHECK(actors::gpus_of(all[0]).empty());
}

TEST_CASE("Roles take their needs from the experiment where the cluster gives none") {
  const Experiment what =
      experiment({"learner.threads=3", "replay.shards=2", "replay.capacity_bytes=4194304",
                  "actors.threads_per_actor=2"});
  auto needs = role_needs(parse_cluster("local {}", "c"), what);
  CHECK(needs.at("learner").cores == 3);
  CHECK(needs.at("learner").pack);
  CHECK(needs.at("environment").cores == 1); // one environment cannot use two threads
  CHECK(needs.at("replay").memory_bytes == 2097152);
  CHECK(needs.at("head").cores == 1);
  needs = role_needs(parse_cluster(R"(local {} node { name: "n" label: "zone=a=b" }
    role { name: "learner" cores: 0 gpus: 1 memory_bytes: 7 spread: SPREAD on_label: "zone=a=b"
           apart: ["learner", "replay"] on_gpu_node: true on_node: "n" }
    role { name: "evaluator" together: "learner" })",
                                   "c"),
                     what);
  CHECK(needs.at("learner").cores == 0);
  CHECK(needs.at("learner").gpus == 1);
  CHECK(needs.at("learner").memory_bytes == 7);
  CHECK_FALSE(needs.at("learner").pack);
  CHECK(needs.at("learner").on_labels.at("zone") == "a=b");
  CHECK(needs.at("learner").apart == std::vector<std::string>{"learner", "replay"});
  CHECK(needs.at("learner").on_gpu_node);
  CHECK(needs.at("learner").on_nodes == std::vector<std::string>{"n"});
  CHECK(needs.at("evaluator").together == std::vector<std::string>{"learner"});
}

TEST_CASE("Role counts override the experiment, and the resulting experiment is placed") {
  const Cluster cluster = parse_cluster(R"(local {} role { name: "environment" count: 5 }
    role { name: "replay" count: 3 } role { name: "learner" count: 2 }
    role { name: "parameter_server" count: 4 } role { name: "evaluator" })",
                                        "c");
  CHECK(cluster_overrides(cluster)
        == std::vector<std::string>{"actors.environment=5", "replay.shards=3", "learner.replicas=2",
                                    "learner.parameter_servers=4"});
  using Counts = std::map<std::string, int>;
  CHECK(role_counts(experiment(cluster_overrides(cluster)))
        == Counts{{"environment", 5},
                  {"evaluator", 1},
                  {"learner", 2},
                  {"parameter_server", 0},
                  {"replay", 3}});
  CHECK(role_counts(experiment({"learner.strategy=parameter_server max_staleness=8",
                                "learner.parameter_servers=2"}))
            .at("parameter_server")
        == 2);
  const Experiment data = parse_experiment("classifier {} data { path: \"p\" }", "d.textproto");
  CHECK(role_counts(data)
        == Counts{{"environment", 0},
                  {"evaluator", 0},
                  {"learner", 1},
                  {"parameter_server", 0},
                  {"replay", 0}});
}

TEST_CASE("The head is placed first, on its node") {
  const Cluster cluster = parse_cluster("local {} node { name: \"a\" cores: 2 } node { name: \"b\" "
                                        "cores: 2 } head { node: \"b\" cores: 2 }",
                                        "c");
  const actors::Placer placer = make_placer(cluster, experiment(), kHere);
  REQUIRE(placer.find("head", 0) != nullptr);
  CHECK(placer.find("head", 0)->node == "b");
  const Cluster small =
      parse_cluster("local {} node { name: \"a\" cores: 2 } head { node: \"a\" cores: 3 }", "c");
  CHECK_THROWS_WITH_AS(
      make_placer(small, experiment(), kHere),
      "head.node is \"a\": head 0 needs 3 cores, on a; the only node, a, has 2 of 2 "
      "cores free; name another node, or lower head.cores and head.memory_bytes",
      ConfigError);
}

TEST_CASE("The head's listen address and the address given to nodes are resolved separately") {
  const auto at = [](const std::string& head, bool for_nodes) {
    return head_endpoint(parse_cluster("keys: \"k\" head { " + head + " }", "c"), for_nodes);
  };
  CHECK(at("", false).host == "127.0.0.1");
  CHECK(at("", false).port == 0);
  CHECK(at("listen: \"[::]:7\" address: \"h:8\"", false).host == "::");
  CHECK(at("listen: \"[::]:7\" address: \"h:8\"", true).host == "h");
  CHECK(at("listen: \"[::]:7\" address: \"h:8\"", true).port == 8);
  CHECK(at("listen: \"h:7\"", true).port == 7);
  const std::string slurm = "keys: \"k\" node { name: \"n\" count: 2 cores: 1 } slurm {}";
  CHECK(parse_cluster(slurm, "c").head().listen() == "0.0.0.0:0");
  CHECK(parse_cluster(slurm, "c").head().node() == "n-0");
  CHECK(parse_cluster(slurm + " head { listen: \"127.0.0.1:5\" }", "c").head().listen()
        == "127.0.0.1:5");
}

TEST_CASE(
    "An invalid cluster is refused, and the error names the place, value, rule and a remedy") {
  struct Mistake {
    std::string text, part;
  };
  const std::string k8s = "keys: \"k\" runs: \"/r\" head { memory_bytes: 5 } ";
  const std::string pool = "node { name: \"n\" cores: 1 memory_bytes: 9000000000 } ";
  for (const Mistake& mistake : std::vector<Mistake>{
           {"nodes { }", "bad.textproto:1:1: nodes is not a key; did you mean node"},
           {"nodes { }", "`troupe list cluster-keys` names them all"},
           {"local {}\nssh {}", "bad.textproto:2:1: ssh is given together with local; one of them"},
           {"ssh {}", "ssh is given without a node; write node {"},
           {"name: \"A b\"", "name is \"A b\"; it must be 1 to 24 of a-z"},
           {"local {} node { }", "node[0].name is \"\"; it must be 1 to 24"},
           {"local {}\nnode { name: \"a\" count: 0 }", "bad.textproto:2:18: node[0].count is 0"},
           {"node { name: \"a-1\" } node { name: \"a\" count: 2 }",
            "node[1].name makes a node \"a-1\", which another block makes too"},
           {"node { name: \"a\" count: 65536 } node { name: \"b\" }",
            "counts 65537 nodes; at most 65536"},
           {"node { name: \"a\" count: 3 address: \"h[1-2]\" }", "names 2 hosts; it must name 3"},
           {"node { name: \"a\" address: \"-oProxyCommand=x\" }",
            "a host is a name or an IPv4 address"},
           {"node { name: \"a\" address: \"me@h\" }", "a host is a name or an IPv4 address"},
           {"node { name: \"a\" address: \"fd00::1\" }", "node[0].address has \"fd00::1\"; a host"},
           {"node { name: \"a\" label: \"x\" }", "node[0].label has \"x\"; write \"key=value\""},
           {"node { name: \"a\" cores: 2 numa { cores: \"0\" } }",
            "node[0].numa is given together with node[0].cores"},
           {"node { name: \"a\" numa { cores: \"0-\" } }", "\"0-\" is not a set of processors"},
           {"node { name: \"a\" numa { cores: \"0-1\" } numa { cores: \"1\" } }",
            "node[0].numa[1].cores has core 1 a second time"},
           {"node { name: \"a\" numa { cores: \"0\" gpu: [1, 1] } }",
            "numa[0].gpu has GPU 1 a second time"},
           {"role { name: \"learners\" }", "did you mean \"learner\""},
           {"role { name: \"learner\" } role { name: \"learner\" }",
            "role[1].name is \"learner\", which another block has too"},
           {"role { name: \"evaluator\" count: 2 }", "a run has one evaluator"},
           {"role { name: \"learner\" cores: -2 }", "role[0].cores is -2"},
           {"node { name: \"gpu\" } role { name: \"learner\" on_node: \"gpus\" }",
            "role[0].on_node is \"gpus\", but there is no such node; did you mean \"gpu\"?"},
           {"role { name: \"learner\" together: \"learner\" }",
            "which is the role itself; write spread: PACK"},
           {"role { name: \"learner\" together: \"replay\" apart: \"replay\" }",
            "leave one of them out"},
           {"role { name: \"learner\" on_label: \"=x\" }", "role[0].on_label has \"=x\""},
           {"head { listen: \"somewhere\" }", "head.listen is \"somewhere\""},
           {"head { listen: \"[fd00::1]:7\" } keys: \"k\"",
            "head.listen is \"[fd00::1]:7\"; processes connect to each other by IPv4"},
           {"head { listen: \"[::]:7\" address: \"[fd00::1]:7\" } keys: \"k\"",
            "head.address is \"[fd00::1]:7\"; processes"},
           {"head { listen: \"h:70000\" } keys: \"k\"", "must have a port in [1, 65535]"},
           {"head { listen: \"0.0.0.0:1\" }",
            "keys is empty and head.listen is 0.0.0.0:1, off the loopback interface; create keys "
            "with `troupe keys cluster DIR`"},
           {"node { name: \"a\" } head { node: \"b\" }",
            "head.node is \"b\", but there is no such node"},
           {"node { name: \"a\" address: \"10.0.0.2\" }",
            "head.listen is 127.0.0.1:0, which the node at 10.0.0.2 does not reach"},
           {"ssh {} keys: \"k\" head { listen: \"0.0.0.0:1\" } node { name: \"a\" address: \"h\" }",
            "head.address is empty and head.listen is 0.0.0.0:1"},
           {"ssh {} node { name: \"a\" }", "node[0].address is missing; SSH needs"},
           {"ssh { user: \"-x\" } node { name: \"a\" address: \"localhost\" }",
            "ssh.user is \"-x\"; it must be one word"},
           {"ssh { folder: \"tmp\" } node { name: \"a\" address: \"localhost\" }",
            "ssh.folder is \"tmp\"; it must be an absolute path"},
           {"mpi {} node { name: \"a\" }", "node[0].address is missing; give it, or mpi.hostfile"},
           {"ray {} node { name: \"a\" }", "node[0].cores is 0; ray needs to know what to ask for"},
           {"ray {} node { name: \"a\" cores: 1 address: \"b\" }",
            "node[0].address is given; ray chooses the hosts"},
           {"ray { address: \"-x\" } node { name: \"a\" cores: 1 }",
            "ray.address is \"-x\"; it must be one word"},
           {"ray { strategy: \"FAR\" } node { name: \"a\" cores: 1 }", "ray.strategy"},
           {"slurm {} keys: \"k\" node { name: \"a\" }", "node[0].cores is 0; slurm needs to know"},
           {"slurm {} keys: \"k\" node { name: \"a\" cores: 1 } node { name: \"b\" cores: 1 }",
            "node[1] is given; all nodes of a Slurm job are alike"},
           {"slurm { partition: \"a b\" } keys: \"k\" node { name: \"a\" cores: 1 }",
            "slurm.partition is \"a b\"; it must be one word"},
           {"slurm { option: \"x\" } keys: \"k\" node { name: \"a\" cores: 1 }",
            "slurm.option has \"x\""},
           {"slurm { minutes: 3 } supervision { grace_seconds: 120 } keys: \"k\" "
            "node { name: \"a\" cores: 1 }",
            "slurm.minutes gives the job 180 s; Slurm may ask it to stop 210 s before that"},
           {"slurm { setup: \"a\\nb\" } keys: \"k\" node { name: \"a\" cores: 1 }",
            "slurm.setup[0] has a line break"},
           {k8s + pool + "kubernetes {}", "kubernetes.storage_claim is missing"},
           {"keys: \"k\" head { memory_bytes: 5 } " + pool + "kubernetes { storage_claim: \"c\" }",
            "runs is \"runs\"; with kubernetes it must be an absolute path"},
           {"keys: \"k\" runs: \"/r\" " + pool + "kubernetes { storage_claim: \"c\" }",
            "head.memory_bytes is 0; kubernetes needs to know"},
           {k8s
                + "node { name: \"n\" cores: 1 memory_bytes: 5 } kubernetes { storage_claim: \"c\" "
                  "}",
            "it must be above kubernetes.shared_memory_bytes"},
           {k8s + "node { name: \"n\" cores: 1 } kubernetes { storage_claim: \"c\" }",
            "node[0].memory_bytes is 0"},
           {k8s + pool + "kubernetes { storage_claim: \"c\" node_selector: \"x\" }",
            "kubernetes.node_selector has \"x\""},
           {k8s
                + "node { name: \"head\" cores: 1 memory_bytes: 9000000000 } kubernetes { "
                  "storage_claim: \"c\" }",
            "node[0].name is \"head\"; with kubernetes the head's own Job has that name"},
           {"keys: \"k\" runs: \"/r\" head { memory_bytes: 5 listen: \"0.0.0.0:0\" } " + pool
                + "kubernetes { storage_claim: \"c\" }",
            "head.listen is 0.0.0.0:0; with kubernetes it needs a fixed port"},
           {"runs: \"/r\" head { memory_bytes: 5 } " + pool + "kubernetes { storage_claim: \"c\" }",
            "keys is empty"}}) {
    CAPTURE(mistake.text);
    const std::string told = complaints(mistake.text);
    CAPTURE(told);
    CHECK(has(told, mistake.part));
    CHECK(told.starts_with("bad.textproto"));
  }
  CHECK(complaints("local {}") == "");
  CHECK(complaints(k8s + pool + "kubernetes { storage_claim: \"c\" }") == "");
  CHECK_THROWS_AS(load_cluster("/nowhere/x.textproto"), ConfigError);
}

TEST_CASE("A mutated cluster is either parsed or refused with an error that names its source") {
  const std::string original = read_text(kClusters / "ssh.textproto");
  env::Random random(17);
  const auto below = [&](std::size_t limit) {
    return static_cast<std::size_t>(random.bits() % limit);
  };
  static const std::vector<std::string> kTokens = {
      "{",         "}",      ":",     "[",        "]",       "\"",
      "-",         "0",      "65536", "local {}", "\n",      "count: 70000",
      "[0-99999]", "numa {", "=",     "\xff",     "slurm {}"};
  int refused = 0, read = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = original;
    for (std::size_t edits = 1 + below(3); edits > 0; --edits) {
      const std::size_t at = below(text.size());
      switch (below(3)) {
      case 0:
        text[at] = static_cast<char>(random.bits());
        break;
      case 1:
        text.erase(at, below(20));
        break;
      default:
        text.insert(at, kTokens[below(kTokens.size())]);
      }
    }
    CAPTURE(text);
    try {
      const Cluster cluster = parse_cluster(text, "fuzz.textproto");
      cluster_nodes(cluster, kHere);
      CHECK_NOTHROW(parse_cluster(resolved_text(cluster), "fuzz.textproto"));
      ++read;
    } catch (const ConfigError& error) {
      CHECK(std::string(error.what()).starts_with("fuzz.textproto"));
      ++refused;
    }
  }
  CHECK(refused > 100);
  CHECK(read > 100);
}
