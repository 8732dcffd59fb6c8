#include "actors/placement/placer.hpp"
#include "tests/text.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <set>

using namespace troupe::actors;
using troupe::has;

namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

CoreSet range(int first, int count) {
  CoreSet cores(static_cast<std::size_t>(count));
  std::iota(cores.begin(), cores.end(), first);
  return cores;
}

NodeResources node(const std::string& name, int cores, int gpus = 0, std::int64_t memory = 0) {
  return {.name = name,
          .numa = {{.cores = range(0, cores), .gpus = range(0, gpus)}},
          .memory_bytes = memory};
}

std::string home(const Placer& placer, const std::string& role, int index) {
  const Assignment* found = placer.find(role, index);
  return found == nullptr ? "nowhere" : found->node;
}

/// Checks that no core or GPU of a node is assigned twice.
void check_exclusive(const Placer& placer) {
  std::set<std::pair<std::string, int>> cores, gpus;
  for (const auto& [who, at] : placer.assignments()) {
    for (const int core : at.cores)
      CHECK(cores.insert({at.node, core}).second);
    for (const int gpu : at.gpus)
      CHECK(gpus.insert({at.node, gpu}).second);
  }
}

} // namespace

TEST_CASE("A role is spread over identical nodes in their order") {
  Placer placer({{"environment", {.cores = 2}}});
  for (const char* name : {"a", "b", "c"})
    placer.add_node(node(name, 8));
  CHECK(placer.place_all({{"environment", 5}}) == "");
  CHECK(home(placer, "environment", 0) == "a");
  CHECK(home(placer, "environment", 1) == "b");
  CHECK(home(placer, "environment", 2) == "c");
  CHECK(home(placer, "environment", 3) == "a");
  CHECK(placer.find("environment", 3)->cores == CoreSet{2, 3});
  check_exclusive(placer);
  CHECK(core_set_text(cores_of(placer.free("a"))) == "4-7");
  CHECK(core_set_text(cores_of(placer.free("c"))) == "2-7");
}

TEST_CASE("A larger node gets no more replicas of a role while another node has room") {
  Placer placer({{"environment", {.cores = 1}}});
  placer.add_node(node("large", 16));
  placer.add_node(node("small", 4));
  CHECK(placer.place_all({{"environment", 4}}) == "");
  CHECK(home(placer, "environment", 2) == "large");
  CHECK(home(placer, "environment", 3) == "small"); // although it is then a quarter full
}

TEST_CASE("A role that must be together with another is placed after it and on its node") {
  Placer placer({{"replay", {.cores = 1, .pack = true}},
                 {"environment", {.cores = 3, .together = {"replay"}}}});
  placer.add_node(node("a", 8));
  placer.add_node(node("b", 8));
  CHECK(placer.place_all({{"replay", 1}, {"environment", 2}}) == "");
  CHECK(home(placer, "environment", 0) == home(placer, "replay", 0));
  CHECK(home(placer, "environment", 1) == home(placer, "replay", 0));
  CHECK(has(placer.place("environment", 2).problem, "the nearest, a, has 1 of 8 cores free"));
}

TEST_CASE("Of nodes with equally many replicas of a role, the least used one gets the next") {
  Placer placer({{"environment", {.cores = 1}}, {"replay", {.cores = 4}}});
  placer.add_node(node("a", 8));
  placer.add_node(node("b", 8));
  CHECK(placer.place("replay", 0));
  CHECK(placer.place("environment", 0));
  CHECK(home(placer, "environment", 0) == "b");
}

TEST_CASE("Packed replicas share a node while it has room") {
  Placer placer({{"learner", {.cores = 2, .pack = true}}});
  placer.add_node(node("a", 4));
  placer.add_node(node("b", 8));
  CHECK(placer.place_all({{"learner", 4}}) == "");
  CHECK(home(placer, "learner", 0) == "a");
  CHECK(home(placer, "learner", 1) == "a");
  CHECK(home(placer, "learner", 2) == "b");
}

TEST_CASE("Each learner gets its own GPU and cores near it") {
  Placer placer({{"learner", {.cores = 3, .gpus = 1, .pack = true}}});
  placer.add_node(
      {.name = "g",
       .numa = {{.cores = range(0, 8), .gpus = {0, 1}}, {.cores = range(8, 8), .gpus = {2, 3}}}});
  CHECK(placer.place_all({{"learner", 4}}) == "");
  std::set<int> gpus;
  for (int i = 0; i < 4; ++i) {
    const Assignment& at = *placer.find("learner", i);
    REQUIRE(at.gpus.size() == 1);
    gpus.insert(at.gpus[0]);
    const bool second = at.gpus[0] >= 2;
    for (const int core : at.cores)
      CHECK((core >= 8) == second);
  }
  CHECK(gpus == std::set<int>{0, 1, 2, 3});
  const std::string problem = placer.place("learner", 4).problem;
  CHECK(has(problem, "learner 4 needs 3 cores and 1 GPU"));
  CHECK(has(problem, "has 0 of 4 GPUs free"));
  check_exclusive(placer);
}

TEST_CASE("A role without GPUs prefers nodes without free GPUs") {
  Placer placer({{"environment", {.cores = 1}}, {"learner", {.gpus = 1}}});
  placer.add_node(node("gpu", 4, 1));
  placer.add_node(node("cpu", 4));
  for (int i = 0; i < 4; ++i)
    CHECK(placer.place("environment", i));
  for (int i = 0; i < 4; ++i)
    CHECK(home(placer, "environment", i) == "cpu");
  CHECK(placer.place("environment", 4)); // the GPU node is better than no node
  CHECK(home(placer, "environment", 4) == "gpu");
}

TEST_CASE(
    "Cores come from the fullest NUMA node that has room for all of them, or else from several") {
  Placer placer({{"a", {.cores = 3}}, {"b", {.cores = 2}}, {"wide", {.cores = 6}}});
  placer.add_node({.name = "n", .numa = {{.cores = range(0, 4)}, {.cores = range(4, 4)}}});
  CHECK(placer.place("a", 0));
  CHECK(placer.find("a", 0)->cores == CoreSet{0, 1, 2});
  CHECK(placer.place("b", 0)); // one core is left on the first
  CHECK(placer.find("b", 0)->cores == CoreSet{4, 5});
  CHECK(placer.place("b", 1));
  CHECK(placer.find("b", 1)->cores == CoreSet{6, 7});
  placer.release("a", 0);
  placer.release("b", 0);
  CHECK(placer.place("wide", 0)); // fits on no single NUMA node
  CHECK(placer.find("wide", 0)->cores == CoreSet{0, 1, 2, 3, 4, 5});
  check_exclusive(placer);
}

TEST_CASE(
    "Small roles fill one NUMA node before the next, and a role with a GPU runs beside its GPU") {
  Placer placer({{"a", {.cores = 1}}, {"learner", {.cores = 2, .gpus = 1}}});
  placer.add_node({.name = "n",
                   .numa = {{.cores = range(0, 4)},
                            {.cores = range(4, 4)},
                            {.cores = range(8, 4), .gpus = {0}}}});
  CHECK(placer.place("a", 0));
  CHECK(placer.place("a", 1));
  CHECK(placer.find("a", 0)->cores == CoreSet{0});
  CHECK(placer.find("a", 1)->cores == CoreSet{1});
  CHECK(placer.place("learner", 0));
  CHECK(placer.find("learner", 0)->cores == CoreSet{8, 9});
}

TEST_CASE("A GPU's NUMA node supplies the cores that it has, and another node the rest") {
  Placer placer({{"learner", {.cores = 3, .gpus = 1}}});
  placer.add_node(
      {.name = "n", .numa = {{.cores = range(0, 2)}, {.cores = range(2, 2), .gpus = {0}}}});
  CHECK(placer.place("learner", 0));
  CHECK(placer.find("learner", 0)->cores == CoreSet{0, 2, 3});
  CHECK(placer.find("learner", 0)->gpus == std::vector<int>{0});
}

TEST_CASE("Placement rules for together, apart, GPUs, labels and names are obeyed") {
  Placer placer({{"replay", {.cores = 1, .apart = {"replay"}}},
                 {"environment", {.cores = 1, .together = {"replay"}}},
                 {"learner", {.cores = 1, .apart = {"environment"}, .on_gpu_node = true}},
                 {"evaluator", {.cores = 1, .on_labels = {{"zone", "x"}}}},
                 {"parameter_server", {.cores = 1, .on_nodes = {"cpu"}}}});
  NodeResources first = node("cpu-0", 8);
  first.group = "cpu";
  NodeResources second = node("cpu-1", 8);
  second.group = "cpu";
  second.labels = {{"zone", "x"}};
  placer.add_node(node("gpu", 8, 1));
  placer.add_node(first);
  placer.add_node(second);
  CHECK(placer.place_all({{"replay", 2},
                          {"environment", 4},
                          {"learner", 1},
                          {"evaluator", 1},
                          {"parameter_server", 2}})
        == "");
  CHECK(home(placer, "learner", 0) == "gpu");
  CHECK(home(placer, "evaluator", 0) == "cpu-1");
  CHECK(home(placer, "replay", 0) != home(placer, "replay", 1));
  for (int i = 0; i < 4; ++i) {
    const std::string at = home(placer, "environment", i);
    CHECK((at == home(placer, "replay", 0) || at == home(placer, "replay", 1)));
    CHECK(at != "gpu");
  }
  CHECK(home(placer, "parameter_server", 0) == "cpu-0");
  CHECK(home(placer, "parameter_server", 1) == "cpu-1");
}

TEST_CASE("An apart rule also applies to the role that is placed second") {
  Placer placer({{"learner", {.apart = {"environment"}}}, {"environment", RoleNeeds()}});
  placer.add_node(node("a", 4));
  CHECK(placer.place("learner", 0));
  const std::string problem = placer.place("environment", 0).problem;
  CHECK(has(problem, "environment 0 needs 1 core"));
  CHECK(has(problem, "has learner, which it must be apart from"));
}

TEST_CASE("An impossible demand is refused with its needs, the nearest node, what that node lacks "
          "and a remedy") {
  Placer placer({{"learner", {.cores = 8, .gpus = 1, .memory_bytes = 16 * kGiB}},
                 {"evaluator", {.on_labels = {{"zone", "x"}}, .on_nodes = {"b"}}}});
  CHECK(has(placer.place("learner", 0).problem, "there is no node yet; start one"));
  placer.add_node(node("a", 4, 0, 8 * kGiB));
  placer.add_node(node("b", 16, 0, 32 * kGiB));
  CHECK(placer.place("learner", 0).problem
        == "learner 0 needs 8 cores, 1 GPU and 16 GiB of memory; no node has that: the nearest, b, "
           "has 0 of 0 GPUs free; add nodes, or change role { name: \"learner\" … } in the cluster "
           "file");
  CHECK(has(placer.place("evaluator", 0).problem,
            "needs 1 core, on a node labelled zone=x, on b; no node has that: the nearest, b, "
            "lacks the label zone=x"));
  Placer full({{"replay", {.memory_bytes = 5 * kGiB}}, {"environment", {.cores = 2}}});
  full.add_node(node("a", 3, 0, 8 * kGiB));
  CHECK(full.place("replay", 0));
  CHECK(
      has(full.place("replay", 1).problem, "the only node, a, has 3 GiB of 8 GiB of memory free"));
  CHECK(full.place("environment", 0));
  CHECK(has(full.place("environment", 1).problem,
            "has 0 of 3 cores free; add nodes, set oversubscribe: true, or change role"));
}

TEST_CASE("All roles are placed or none, and the hardest to place come first") {
  std::map<std::string, RoleNeeds> roles = {{"environment", {.cores = 1}},
                                            {"learner", {.cores = 4, .gpus = 1}},
                                            {"replay", {.cores = 3}}};
  Placer placer(roles);
  placer.add_node(node("a", 8, 1));
  placer.add_node(node("b", 4));
  CHECK(placer.place_all({{"environment", 5}, {"learner", 1}, {"replay", 1}}) == "");
  CHECK(home(placer, "learner", 0) == "a");
  CHECK(placer.assignments().size() == 7);
  Placer small(roles);
  small.add_node(node("a", 8, 1));
  const std::string problem = small.place_all({{"environment", 2}, {"learner", 1}, {"replay", 1}});
  CHECK(has(problem, "environment 1 needs 1 core"));
  CHECK(small.assignments().empty());
  CHECK(cores_of(small.free("a")).size() == 8);
}

TEST_CASE("Roles are packed where spreading would leave gaps that are too small") {
  Placer placer({{"learner", {.cores = 2, .gpus = 1}}, {"replay", {.cores = 4}}});
  placer.add_node(node("a", 5, 2));
  placer.add_node(node("b", 5, 2));
  CHECK(placer.place_all({{"learner", 2}, {"replay", 1}}) == "");
  CHECK(home(placer, "learner", 1) == "a");
  CHECK(home(placer, "replay", 0) == "b");
}

TEST_CASE("With oversubscribe, the least used cores are shared, but GPUs and memory are not") {
  Placer placer(
      {{"environment", {.cores = 2}}, {"learner", {.cores = 8, .gpus = 1, .memory_bytes = kGiB}}},
      true);
  placer.add_node(node("a", 4, 1, kGiB));
  for (int i = 0; i < 6; ++i)
    CHECK(placer.place("environment", i));
  CHECK(placer.find("environment", 0)->cores == CoreSet{0, 1});
  CHECK(placer.find("environment", 1)->cores == CoreSet{2, 3});
  CHECK(placer.find("environment", 2)->cores == CoreSet{0, 1});
  CHECK(placer.place("learner", 0));
  CHECK(placer.find("learner", 0)->cores == CoreSet{0, 1, 2, 3}); // more than the node has
  CHECK(has(placer.place("learner", 1).problem,
            "has 0 of 1 GPU free and has 0 B of 1 GiB of memory free"));
}

TEST_CASE("Processes of a dead node are placed on other nodes, or on it when it returns") {
  Placer placer({{"environment", {.cores = 2}}, {"replay", {.cores = 2}}});
  placer.add_node(node("a", 4));
  placer.add_node(node("b", 4));
  placer.add_node(node("c", 4));
  CHECK(placer.place_all({{"environment", 3}, {"replay", 2}}) == "");
  const auto before = placer.assignments();
  const auto homeless = placer.remove_node("a");
  REQUIRE(homeless.size() == 2);
  CHECK(placer.nodes() == std::vector<std::string>{"b", "c"});
  CHECK(placer.place(homeless[0].first, homeless[0].second));
  CHECK(home(placer, homeless[0].first, homeless[0].second) == "c"); // b is full
  CHECK_FALSE(placer.place(homeless[1].first, homeless[1].second));
  for (const auto& [who, at] : before) {
    if (at.node != "a")
      CHECK(placer.find(who.first, who.second)->cores == at.cores); // the others keep their cores
  }
  placer.add_node(node("a", 4));
  CHECK(placer.place(homeless[1].first, homeless[1].second));
  CHECK(home(placer, homeless[1].first, homeless[1].second) == "a");
  check_exclusive(placer);
}

TEST_CASE("A placed process keeps its place, and a released place is free again") {
  Placer placer({{"environment", {.cores = 2, .memory_bytes = kGiB}}});
  placer.add_node(node("a", 2, 0, kGiB));
  const auto first = placer.place("environment", 0);
  REQUIRE(first);
  CHECK(placer.place("environment", 0).at->cores == first.at->cores);
  CHECK_FALSE(placer.place("environment", 1));
  placer.release("environment", 0);
  placer.release("environment", 0); // releasing twice returns nothing twice
  CHECK(placer.place("environment", 1));
  CHECK_FALSE(placer.place("environment", 0));
}

TEST_CASE("The same calls give the same places") {
  const auto run = [] {
    Placer placer({{"environment", {.cores = 1}},
                   {"learner", {.cores = 2, .gpus = 1, .pack = true}},
                   {"replay", {.cores = 2, .memory_bytes = kGiB}}});
    for (int i = 0; i < 6; ++i)
      placer.add_node(node(std::string("n") + std::to_string(i), 6 + i % 3, i % 2, 8 * kGiB));
    placer.place_all({{"environment", 12}, {"learner", 3}, {"replay", 4}});
    for (const auto& [role, index] : placer.remove_node("n3"))
      placer.place(role, index);
    std::string text;
    for (const auto& [who, at] : placer.assignments())
      text += who.first + std::to_string(who.second) + at.node + core_set_text(at.cores) + ";";
    return text;
  };
  const std::string once = run();
  CHECK(once.size() > 200);
  CHECK(run() == once);
}

TEST_CASE("Invalid needs, roles and nodes are refused") {
  CHECK_THROWS_AS(Placer({{"a", {.cores = -1}}}), std::invalid_argument);
  CHECK_THROWS_AS(Placer({{"a", {.together = {"b"}}}}), std::invalid_argument);
  CHECK_THROWS_AS(Placer({{"a", {.together = {"a"}}}}), std::invalid_argument);
  CHECK_THROWS_AS(Placer({{"a", {.together = {"b"}}}, {"b", {.apart = {"a"}}}}),
                  std::invalid_argument);
  Placer placer({{"a", RoleNeeds()}});
  placer.add_node(node("n", 1));
  CHECK_THROWS_AS(placer.add_node(node("n", 1)), std::invalid_argument);
  CHECK_THROWS_AS(placer.add_node(node("", 1)), std::invalid_argument);
  CHECK_THROWS_AS(placer.add_node({.name = "m", .numa = {{.cores = {1}}, {.cores = {1}}}}),
                  std::invalid_argument);
  CHECK_THROWS_AS(placer.add_node({.name = "m", .numa = {{.gpus = {1}}, {.gpus = {1}}}}),
                  std::invalid_argument);
  CHECK_THROWS_AS(placer.place("b", 0), std::invalid_argument);
  CHECK_THROWS_AS(placer.place("a", -1), std::invalid_argument);
  CHECK_THROWS_AS(placer.free("m"), std::invalid_argument);
  CHECK(placer.remove_node("m").empty());
}

TEST_CASE("A process that needs no cores is pinned to none") {
  Placer placer({{"evaluator", {.cores = 0}}});
  placer.add_node(node("a", 1));
  CHECK(placer.place("evaluator", 0));
  CHECK(placer.place("evaluator", 1));
  CHECK(placer.find("evaluator", 1)->cores.empty());
}

TEST_CASE("Thousands of processes are placed on a thousand nodes and placed again when nodes die") {
  Placer placer({{"environment", {.cores = 8}}, {"replay", {.cores = 4, .apart = {"replay"}}}});
  for (int i = 0; i < 1000; ++i)
    placer.add_node(node(std::string("n") + std::to_string(i), 64));
  CHECK(placer.place_all({{"environment", 4000}, {"replay", 64}}) == "");
  CHECK(placer.assignments().size() == 4064);
  for (int i = 0; i < 100; ++i) {
    for (const auto& [role, index] : placer.remove_node(std::string("n") + std::to_string(i)))
      CHECK(placer.place(role, index));
  }
  CHECK(placer.assignments().size() == 4064);
  check_exclusive(placer);
}
