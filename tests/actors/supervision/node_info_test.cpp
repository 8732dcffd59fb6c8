#include "actors/supervision/node_info.hpp"

#include <doctest/doctest.h>

namespace troupe::actors {
namespace {

wire::NodeInfo info(const std::string& name, const std::string& address = "10.0.0.1") {
  wire::NodeInfo told;
  told.set_name(name);
  told.set_address(address);
  told.add_numa()->set_cores("0-3,8");
  return told;
}

TEST_CASE("A node's description is converted to resources and back unchanged") {
  auto told = info("rack-1.gpu_7:0");
  told.mutable_numa(0)->add_gpus(2);
  told.set_memory_bytes(1 << 20);
  told.set_shares_cores(true);
  (*told.mutable_labels())["zone"] = "b";
  const NodeResources node = node_resources(told);
  CHECK(node.name == "rack-1.gpu_7:0");
  CHECK(cores_of(node) == CoreSet{0, 1, 2, 3, 8});
  const auto again = node_info(node, 5);
  CHECK(again.life() == 5);
  CHECK(again.numa(0).cores() == "0-3,8");
  CHECK(again.numa(0).gpus(0) == 2);
  CHECK(again.memory_bytes() == 1 << 20);
  CHECK(again.shares_cores());
  CHECK(again.labels().at("zone") == "b");
}

TEST_CASE("A node name or address that could be a path or a hidden file is refused") {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string(".ssh"),
        std::string("../other"), std::string("a/b"), std::string("a\\b"), std::string("a b"),
        std::string("a\nb"), std::string("a\0b", 3), std::string(300, 'a')}) {
    CAPTURE(name);
    CHECK_THROWS_AS(node_resources(info(name)), std::invalid_argument);
    CHECK_THROWS_AS(node_resources(info("good", name)), std::invalid_argument);
  }
}

TEST_CASE("A short message cannot describe more processors than any host has") {
  auto told = info("large");
  for (int i = 0; i < 1000; ++i)
    told.add_numa()->set_cores("0-65535");
  CHECK_THROWS_WITH_AS(node_resources(told), "node \"large\" reports resources that no host has",
                       std::invalid_argument);
  told = info("negative");
  told.set_memory_bytes(-1);
  CHECK_THROWS_AS(node_resources(told), std::invalid_argument);
}

} // namespace
} // namespace troupe::actors
