#include "experiments/launchers/ray_launcher.hpp"

#include <cstdlib>
#include <set>

#include "tests/experiments/launchers/launcher_fixture.hpp"

using namespace troupe;
using namespace troupe::experiments::launchers;
using std::chrono::seconds;

namespace {

RaySettings ray(seconds limit = seconds(60)) {
  return {.address = std::getenv("RAY_ADDRESS"),
          .python = std::getenv("TROUPE_RAY_PYTHON"),
          .strategy = "STRICT_SPREAD",
          .start_limit = limit};
}

NodeStart node(int number, std::vector<std::string> arguments = {}, int cores = 2) {
  arguments.insert(arguments.begin(), "node");
  return {
      .name = "node-" + std::to_string(number), .arguments = std::move(arguments), .cores = cores};
}

/// Lists the processes of the nodes and their shared memory, but not Ray's, which stay.
const char* const kNodes = "pgrep -af [s]tand_in_node; on_host 0 find /dev/shm -name \"troupe*\"";

} // namespace

TEST_CASE("Ray starts nodes on different hosts, one may die, and the others stop on request") {
  Watched watched;
  auto settings = watched.settings();
  settings.environment = {{"TROUPE_HEAD", "outside:1"}};
  RayLauncher launcher(settings, ray());
  launcher.start({node(0), node(1), node(2, {"--fail", "3"})});
  REQUIRE(watched.says("node-0: works"));
  REQUIRE(watched.says("node-1: works"));
  CHECK(watched.says("node-0: node-0 on host"));
  auto ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("node-2").how.find("ended with exit code 3: cannot find its head")
        != std::string::npos);
  std::set<std::string> hosts;
  for (const char* name : {"node-0", "node-1", "node-2"}) {
    const std::string text = watched.text();
    const std::size_t at = text.find(std::string(name) + " on host");
    REQUIRE(at != std::string::npos);
    hosts.insert(text.substr(at + std::string(name).size(), 9));
  }
  CHECK(hosts.size() == 3);

  shell("kill -9 " + watched.process("node-1"));
  ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("node-1").how.find("was killed by signal 9 (Killed): works") != std::string::npos);
  launcher.start({node(1)});
  CHECK(watched.says("node-1: works", 2));
  CHECK(launcher.poll().empty());

  launcher.stop(seconds(30));
  ends = watched.ends(launcher, 2);
  REQUIRE(ends.size() == 2);
  CHECK(ends.at("node-0").good);
  CHECK(ends.at("node-1").good);
  CHECK(watched.text().find("node-0: goes") != std::string::npos);
  CHECK(comes_to(on_hosts(kNodes), ""));
}

TEST_CASE(
    "Nodes that Ray has no room for, that do not stop, or whose program is missing are reported") {
  Watched watched;
  RayLauncher launcher(watched.settings(), ray(seconds(10)));
  launcher.start({node(0, {}, 99)});
  auto ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("node-0").how.find("Ray had not reserved node-0 {\"CPU\": 99}")
        != std::string::npos);

  launcher.start({node(0)}); // it reserves resources from now on
  launcher.start({node(1)});
  REQUIRE(watched.says("node-0: works"));
  REQUIRE(watched.says("node-1: works"));
  launcher.stop(seconds(30));
  CHECK(watched.ends(launcher, 2).size() == 2);

  RayLauncher stubborn(watched.settings(), ray());
  stubborn.start({node(0, {"--stubborn"})});
  REQUIRE(watched.says("node-0: works", 2));
  stubborn.stop(seconds(1));
  ends = watched.ends(stubborn, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("node-0").how.find("had not exited 1 s after SIGTERM") != std::string::npos);
  CHECK(comes_to(on_hosts(kNodes), ""));

  RayLauncher orphaned(watched.settings(), ray());
  orphaned.start({node(1)});
  REQUIRE(watched.says("node-1: works", 2));
  shell("pkill -9 -f \"[t]roupe-ray started\""); // as the kernel does when the launcher is killed
  ends = watched.ends(orphaned, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("node-1").how
        == "node node-1: the program that starts nodes in Ray was killed by signal 9 (Killed)");
  CHECK(comes_to(on_hosts(kNodes), ""));

  RayLauncher without(watched.settings("/nowhere/troupe"), ray());
  without.start({node(0)});
  ends = watched.ends(without, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("node-0").how.find("/nowhere/troupe cannot be started") != std::string::npos);
}

TEST_CASE("When a Ray node is lost, its nodes are reported lost and can restart on another host") {
  Watched watched;
  RayLauncher launcher(watched.settings(), ray());
  launcher.start({node(0, {}, 4), node(1, {}, 4)}); // on three hosts with four cores each
  REQUIRE(watched.says("node-0: works"));
  REQUIRE(watched.says("node-1: works"));
  const auto host_of = [&](const std::string& name) {
    const std::string text = watched.text();
    return text.substr(text.rfind(name + " on host") + name.size() + 8, 1);
  };
  const std::string lost = host_of("node-0") == "0" ? "node-1" : "node-0"; // the head stays
  const std::string host = host_of(lost), other = host_of(lost == "node-0" ? "node-1" : "node-0");
  shell(on_hosts("pkill -9 -f \"[r]aylet.*node_ip_address=$(host_address " + host + ")\""));
  const auto ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at(lost).how.find("node " + lost + " (host" + host + ") is lost: ") == 0);
  launcher.start({node(lost == "node-0" ? 0 : 1, {}, 4)});
  REQUIRE(watched.says(lost + ": works", 2));
  CHECK(host_of(lost) != host);
  CHECK(host_of(lost) != other);
  launcher.stop(seconds(30));
  CHECK(comes_to(on_hosts(kNodes), ""));
}

TEST_CASE("A missing Python package fails the node, and a missing Ray cluster is named") {
  Watched watched;
  RaySettings settings = ray();
  settings.python = "/usr/bin/env";
  RayLauncher none(watched.settings(), settings);
  none.start({node(0)});
  auto ends = watched.ends(none, 1);
  REQUIRE(ends.size() == 1);
  CHECK_FALSE(ends.at("node-0").good);

  settings = ray();
  settings.address = "127.0.0.1:1";
  RayLauncher nowhere(watched.settings(), settings);
  nowhere.start({node(0)});
  ends = watched.ends(nowhere, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("node-0").how.find("no Ray cluster at 127.0.0.1:1") != std::string::npos);
}
