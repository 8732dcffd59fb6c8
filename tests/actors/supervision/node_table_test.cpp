#include "actors/supervision/node_table.hpp"

#include "tests/doctest_torch.hpp"

namespace troupe::actors {
namespace {

NodeResources node_of(const std::string& name, int cores) {
  NodeResources node;
  node.name = name;
  node.address = "10.0.0." + std::to_string(cores);
  node.numa.emplace_back();
  for (int core = 0; core < cores; ++core)
    node.numa.back().cores.push_back(core);
  return node;
}

NodeTable two_nodes() { // expected within 100 ticks; a process takes one core
  Placer placer({{"learner", {.cores = 1}}, {"environment", {.cores = 1}}});
  placer.add_node(node_of("a", 2));
  placer.add_node(node_of("b", 1));
  return {placer, 100};
}

TEST_CASE("Processes are placed once all nodes have joined or the deadline has passed") {
  struct Row {
    bool b_joins;
    std::int64_t now;
    bool placed;
  };
  for (const Row& row : {Row{false, 100, false}, Row{true, 5, true}, Row{false, 101, true}}) {
    auto nodes = two_nodes();
    nodes.join(node_of("a", 2), 1, 0);
    if (row.b_joins)
      nodes.join(node_of("b", 1), 1, 0);
    CHECK(nodes.place_all({{"environment", 2}}, row.now).empty());
    CHECK(bool(nodes.place("environment", 0, 0)) == row.placed);
  }
}

TEST_CASE("A node gets as many of its own cores and GPUs as the cluster file counts") {
  Placer placer({{"learner", {.cores = 2, .gpus = 1}}});
  auto counted = node_of("a", 2); // cores 0 and 1 stand for any two
  counted.numa.back().gpus = {0};
  counted.counts = true;
  placer.add_node(counted);
  auto listed = node_of("b", 2);
  listed.numa.back().gpus = {0};
  placer.add_node(listed);
  NodeTable nodes(placer, 100);
  auto reported = node_of("a", 0);
  reported.numa = {NumaNode{.cores = {16, 17, 18}, .gpus = {2, 3}}};
  nodes.join(reported, 1, 0);
  CHECK(cores_of(nodes.known().at("a")) == CoreSet{16, 17});
  CHECK(gpus_of(nodes.known().at("a")) == std::vector<int>{2});
  CHECK_FALSE(nodes.known().at("a").shares_cores);
  reported.numa = {NumaNode{.cores = {4, 5}, .gpus = {0}}}; // it comes back on another host
  reported.shares_cores = true;
  nodes.join(reported, 2, 0);
  CHECK(cores_of(nodes.known().at("a")) == CoreSet{4, 5});
  CHECK(nodes.known().at("a").shares_cores);
  reported.name = "b";
  nodes.join(reported, 1, 0);
  CHECK(cores_of(nodes.known().at("b")) == CoreSet{0, 1});
  CHECK_FALSE(nodes.known().at("b").shares_cores);
}

TEST_CASE("A node whose resources the cluster file does not say keeps the file's labels and name") {
  Placer placer({{"learner", {.on_labels = {{"zone", "a"}}, .on_nodes = {"big"}}}});
  NodeResources open{.name = "a"};
  open.labels = {{"zone", "a"}, {"disk", "fast"}};
  open.group = "big";
  open.known = false;
  placer.add_node(open);
  NodeTable nodes(placer, 100);
  auto reported = node_of("a", 3);
  reported.labels = {{"zone", "b"}, {"rack", "7"}}; // its own --label
  nodes.join(reported, 1, 0);
  const NodeResources& joined = nodes.known().at("a");
  CHECK(cores_of(joined).size() == 3);
  CHECK(joined.memory_bytes == reported.memory_bytes);
  CHECK(joined.labels
        == std::map<std::string, std::string>{{"disk", "fast"}, {"rack", "7"}, {"zone", "a"}});
  CHECK(joined.group == "big");
}

TEST_CASE("A node with fewer cores than the cluster file counts is not pinned") {
  Placer placer({{"environment", {.cores = 1}}});
  auto counted = node_of("a", 4);
  counted.counts = true;
  placer.add_node(counted);
  NodeTable nodes(placer, 100);
  nodes.join(node_of("a", 2), 1, 0);
  CHECK(cores_of(nodes.known().at("a")).size() == 4);
  CHECK(nodes.known().at("a").shares_cores);
}

TEST_CASE("Missing nodes are reported when the others have no room") {
  auto nodes = two_nodes();
  nodes.join(node_of("b", 1), 1, 0);
  const auto problem = nodes.place_all({{"environment", 3}}, 101);
  CHECK(problem.starts_with("1 of 2 nodes are missing, and "));
  CHECK(nodes.place_all({{"environment", 3}}, 102).empty()); // reported once
}

TEST_CASE("A learner waits until all learners have a place on a live node") {
  auto nodes = two_nodes();
  nodes.join(node_of("a", 2), 1, 0);
  nodes.join(node_of("b", 1), 1, 0);
  REQUIRE(nodes.place_all({{"learner", 3}}, 0).empty());
  CHECK(nodes.place("learner", 0, 3));
  REQUIRE(nodes.remove("b"));
  CHECK_FALSE(nodes.remove("b"));
  int placed = 0;
  for (int learner = 0; learner < 3; ++learner)
    placed += bool(nodes.place("learner", learner, 3)) ? 1 : 0;
  CHECK(placed == 0);
  nodes.join(node_of("b", 1), 2, 7);
  for (int learner = 0; learner < 3; ++learner)
    nodes.place("learner", learner, 3);
  CHECK(nodes.place("learner", 0, 3));
}

TEST_CASE("Heartbeats of a node's earlier incarnation do not count") {
  auto nodes = two_nodes();
  nodes.join(node_of("a", 2), 1, 0);
  nodes.join(node_of("a", 2), 2, 3);
  CHECK_FALSE(nodes.beat("a", 1, 10));
  CHECK_FALSE(nodes.beat("c", 1, 10));
  CHECK(nodes.silent_since(3).empty());
  CHECK(nodes.silent_since(4) == std::vector<std::string>{"a"});
  CHECK(nodes.beat("a", 2, 10));
  CHECK(nodes.silent_since(10).empty());
}

TEST_CASE("Places are reserved for all new processes or for none") {
  auto nodes = two_nodes();
  nodes.join(node_of("a", 2), 1, 0);
  nodes.join(node_of("b", 1), 1, 0);
  REQUIRE(nodes.place_all({{"environment", 1}}, 0).empty());
  CHECK(nodes.reserve("environment", 1, 5).starts_with("there is room for 3 environment actors: "));
  CHECK(nodes.node_of("environment", 1).empty());
  CHECK(nodes.reserve("environment", 1, 3).empty());
  CHECK_FALSE(nodes.node_of("environment", 2).empty());
  nodes.release("environment", 2);
  CHECK(nodes.node_of("environment", 2).empty());
}

TEST_CASE("A process of a dead head regains its place, and no other process gets it") {
  Placer placer({{"learner", {.cores = 1, .gpus = 1}}, {"environment", {.cores = 1}}});
  auto host = node_of("a", 3);
  host.numa.back().gpus = {0, 1};
  placer.add_node(host);
  NodeTable nodes(placer, 100);
  nodes.join(host, 1, 0);
  CHECK(nodes.restore("environment", 0, "b", {1}, {}) == "there is no node b");
  CHECK(nodes.restore("environment", 0, "a", {9}, {}) == "core 9 of node a is not free");
  CHECK(nodes.restore("learner", 0, "a", {2}, {3}) == "GPU 3 of node a is not free");
  REQUIRE(nodes.restore("learner", 0, "a", {2}, {1}).empty());
  REQUIRE(nodes.restore("learner", 0, "a", {2}, {1}).empty()); // restored twice
  CHECK(nodes.restore("environment", 0, "a", {2}, {}) == "core 2 of node a is not free");
  CHECK(nodes.restore("learner", 1, "a", {1}, {1}) == "GPU 1 of node a is not free");
  REQUIRE(nodes.restore("environment", 1, "a", {}, {}).empty()); // its cores were not pinned
  CHECK_FALSE(nodes.placed());
  CHECK(nodes.place_all({{"environment", 2}, {"learner", 1}}, 0).empty()); // no other learner fits
  CHECK(nodes.placed());
  CHECK(nodes.node_of("learner", 0) == "a");
}

TEST_CASE("After a head's death, processes of a node that is still missing keep their places") {
  Placer placer({{"environment", {.cores = 1}}});
  placer.add_node(node_of("a", 1));
  placer.add_node(node_of("b", 1));
  NodeTable nodes(placer, 100, true);
  nodes.join(node_of("a", 1), 1, 0);
  REQUIRE(nodes.restore("environment", 0, "a", {}, {}).empty());
  CHECK(nodes.place_all({{"environment", 2}}, 101).empty()); // environment 1 may live on b
  CHECK(nodes.placed());
  CHECK_FALSE(nodes.place("environment", 1, 0)); // until it restarts when there is room
}

TEST_CASE("The cores of an unpinned process that is taken over are not given to others") {
  Placer placer({{"environment", {.cores = 2}}});
  placer.add_node(node_of("a", 3));
  REQUIRE(placer.restore("environment", 4, "a", {}, {}).empty());
  CHECK(placer.find("environment", 4)->cores.size() == 2);
  CHECK_FALSE(placer.place("environment", 0));
  placer.release("environment", 4);
  CHECK(placer.place("environment", 0));
}

} // namespace
} // namespace troupe::actors
