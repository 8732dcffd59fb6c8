#include "experiments/commands/cluster/node_restarts.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::experiments;
using commands::NodeRestarts;

namespace {

using Names = std::vector<std::string>;

Names due(NodeRestarts& nodes, double now) {
  Names names;
  for (const launchers::NodeStart& start : nodes.due(now))
    names.push_back(start.name);
  return names;
}

} // namespace

TEST_CASE("A host that cannot be reached uses up only its own node's restarts") {
  NodeRestarts nodes({{.name = "a"}, {.name = "b"}}, 3);
  CHECK(due(nodes, 100) == Names{"a", "b"});
  CHECK(due(nodes, 100).empty());
  for (int i = 0; i < 3; ++i) {
    CHECK(nodes.lose("a", 100));
    CHECK(due(nodes, 110) == Names{"a"});
  }
  CHECK_FALSE(nodes.lose("a", 100));
  CHECK(due(nodes, 200).empty());
  CHECK(nodes.lose("b", 200));
  CHECK(due(nodes, 200) == Names{"b"});
}

TEST_CASE("A node is restarted at once after its first loss, then after growing delays") {
  NodeRestarts nodes({{.name = "a"}}, 10);
  CHECK(due(nodes, 0) == Names{"a"});
  CHECK(nodes.lose("a", 0));
  CHECK(due(nodes, 0) == Names{"a"});
  CHECK(nodes.lose("a", 0));
  CHECK(due(nodes, 0.3).empty());
  CHECK(due(nodes, 0.5) == Names{"a"});
  for (int i = 0; i < 8; ++i)
    CHECK(nodes.lose("a", 1));
  CHECK(due(nodes, 10.5).empty());
  CHECK(due(nodes, 11) == Names{"a"});
}

TEST_CASE("Losses of more than an hour ago do not count") {
  NodeRestarts nodes({{.name = "a"}}, 1);
  CHECK(nodes.lose("a", 0));
  CHECK(nodes.lose("a", 3601));
  CHECK_FALSE(nodes.lose("a", 3602));
}
