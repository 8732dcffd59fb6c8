#include "actors/placement/node_resources.hpp"

#include <doctest/doctest.h>

#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::actors;
namespace fs = std::filesystem;

namespace {

void put(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

/// Writes to `root` the system files of a host with two NUMA nodes and eight processors.
void describe_host(const fs::path& root) {
  put(root / "sys/devices/system/node/online", "0-1\n");
  put(root / "sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
  put(root / "sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
  put(root / "proc/meminfo", "MemTotal:       16384 kB\nMemFree:  1 kB\n");
}

void add_gpu(const fs::path& root, int minor, const std::string& address, int numa) {
  put(root / "proc/driver/nvidia/gpus" / address / "information",
      "Model: \t\t NVIDIA H200\nDevice Minor: \t " + std::to_string(minor) + "\n");
  put(root / "sys/bus/pci/devices" / address / "numa_node", std::to_string(numa) + "\n");
  put(root / "dev" / ("nvidia" + std::to_string(minor)), "");
}

} // namespace

TEST_CASE("Core sets are formatted and parsed in taskset's notation") {
  for (const char* text : {"0", "0-3,8", "0,1", "5,7,9-12", "65535"}) {
    CAPTURE(text);
    CHECK(core_set_text(parse_core_set(text)) == text);
  }
  CHECK(core_set_text({}) == "");
  CHECK(parse_core_set("3,1-2,2") == CoreSet{1, 2, 3});
  for (const char* bad : {"", ",", "1,", "-1", "3-1", "a", "1-", "0-65536", "1 2", "0x3", "1--2"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_core_set(bad), std::invalid_argument);
  }
  // A short string cannot describe more cores than there can be.
  std::string many = "0-65535";
  for (int i = 0; i < 1000; ++i)
    many += ",0-65535";
  CHECK_THROWS_AS(parse_core_set(many), std::invalid_argument);
}

TEST_CASE("Byte counts are formatted with a suitable unit") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1536) == "1.5 KiB");
  CHECK(bytes_text(std::int64_t{512} << 20) == "512 MiB");
  CHECK(bytes_text(std::int64_t{16} << 30) == "16 GiB");
}

TEST_CASE("A host's processors are listed by NUMA node without those this process may not use") {
  const TemporaryFolder root;
  describe_host(root.path());
  const NodeResources all = resources_of_host({.root = root.path()});
  REQUIRE(all.numa.size() == 2);
  CHECK(all.numa[0].cores == CoreSet{0, 1, 4, 5});
  CHECK(all.numa[1].cores == CoreSet{2, 3, 6, 7});
  CHECK(all.memory_bytes == 16384 * 1024);
  CHECK(gpus_of(all).empty());
  const NodeResources some = resources_of_host({.root = root.path(), .allowed = {1, 4}});
  REQUIRE(some.numa.size() == 1);
  CHECK(some.numa[0].cores == CoreSet{1, 4});
}

TEST_CASE("A control group's limits apply to processors and memory") {
  const TemporaryFolder root;
  describe_host(root.path());
  put(root / "sys/fs/cgroup/cpu.max", "250000 100000\n");
  put(root / "sys/fs/cgroup/memory.max", "1048576\n");
  const NodeResources host = resources_of_host({.root = root.path()});
  CHECK(cores_of(host) == CoreSet{0, 1}); // two whole cores of one NUMA node
  CHECK(host.memory_bytes == 1048576);
  CHECK(host.shares_cores); // it may use any two
  CHECK_FALSE(resources_of_host({.root = root.path(), .allowed = {4, 5}}).shares_cores);
  put(root / "sys/fs/cgroup/cpu.max", "max 100000\n");
  put(root / "sys/fs/cgroup/memory.max", "max\n");
  const NodeResources unlimited = resources_of_host({.root = root.path()});
  CHECK(cores_of(unlimited).size() == 8);
  CHECK_FALSE(unlimited.shares_cores);
  CHECK(unlimited.memory_bytes == 16384 * 1024);
}

TEST_CASE("Only GPUs with a device file are listed, in bus order and on their NUMA nodes") {
  const TemporaryFolder root;
  describe_host(root.path());
  add_gpu(root.path(), 1, "0000:81:00.0", 1);
  add_gpu(root.path(), 0, "0000:01:00.0", 0);
  add_gpu(root.path(), 2, "0000:c1:00.0", 1);
  fs::remove(root / "dev/nvidia2"); // belongs to another container
  const NodeResources host = resources_of_host({.root = root.path()});
  CHECK(host.numa[0].gpus == std::vector<int>{0});
  CHECK(host.numa[1].gpus == std::vector<int>{1});
  const auto seen = [&](const std::string& visible) {
    return resources_of_host({.root = root.path(), .visible_gpus = visible, .hides_gpus = true});
  };
  CHECK(gpus_of(seen("")).empty());
  CHECK(gpus_of(seen("-1")).empty());
  CHECK(seen("1").numa[1].gpus == std::vector<int>{0}); // GPUs are renumbered
  CHECK(gpus_of(seen("GPU-1f,GPU-2e")).size() == 2);
  CHECK(gpus_of(seen("0,7,1")).size() == 1); // as in CUDA, an invalid index ends the list
}

TEST_CASE("Malformed system files set no limit") {
  const TemporaryFolder root;
  put(root / "sys/devices/system/node/online", "?\n");
  put(root / "sys/devices/system/cpu/online", "0-2\n");
  put(root / "sys/fs/cgroup/cpu.max", "-5 0\n");
  put(root / "sys/fs/cgroup/memory.max", "lots\n");
  const NodeResources host = resources_of_host({.root = root.path()});
  CHECK(cores_of(host) == CoreSet{0, 1, 2});
  CHECK(host.memory_bytes == 0);
}

TEST_CASE("This host reports a name, processors and memory") {
  const NodeResources host = resources_of_this_host();
  CHECK_FALSE(host.name.empty());
  CHECK_FALSE(cores_of(host).empty());
  CHECK(host.memory_bytes > 0);
}

TEST_CASE("A limited number of processors comes from as few NUMA nodes as possible") {
  NodeResources node{.numa = {{.cores = {0, 1}, .gpus = {0}}, {.cores = {2, 3}, .gpus = {1}}}};
  limit_resources(node, 3, 1);
  CHECK(cores_of(node) == CoreSet{0, 1, 2});
  CHECK(gpus_of(node) == std::vector<int>{0});
  limit_resources(node, 2, 0);
  CHECK(node.numa.size() == 1);
}
