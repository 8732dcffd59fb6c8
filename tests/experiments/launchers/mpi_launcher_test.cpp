#include "experiments/launchers/mpi_launcher.hpp"

#include <cstdlib>

#include "tests/experiments/launchers/launcher_fixture.hpp"
#include "tests/scoped_variable.hpp"

using namespace troupe;
using namespace troupe::experiments::launchers;
using std::chrono::seconds;

namespace {

struct RootAllowed {
  ScopedVariable allowed{"OMPI_ALLOW_RUN_AS_ROOT", "1"};
  ScopedVariable confirmed{"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"};
};

MpiSettings mpi() {
  return {.options = {"--mca", "plm_rsh_agent",
                      std::string("ssh -F ") + std::getenv("TROUPE_SSH_CONFIG")}};
}

NodeStart on(int host, std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.begin(), "node");
  const std::string name = "host" + std::to_string(host);
  return {.name = "node-" + std::to_string(host), .host = name, .arguments = std::move(arguments)};
}

/// mpirun's daemons end shortly after mpirun.
const char* const kRuns = "processes_on_hosts";

} // namespace

TEST_CASE("As root, mpirun is refused until the user allows it") {
  const ScopedVariable refused("OMPI_ALLOW_RUN_AS_ROOT", {});
  Watched watched;
  CHECK_THROWS_WITH_AS(
      MpiLauncher(watched.settings(), {}),
      doctest::Contains(
          "set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 yourself"),
      std::invalid_argument);
}

TEST_CASE("mpirun starts nodes on their hosts, one may die, and the others stop on request") {
  const RootAllowed root;
  Watched watched;
  auto settings = watched.settings();
  settings.environment = {{"TROUPE_HEAD", "outside:1"}};
  MpiLauncher launcher(settings, mpi());
  launcher.start({on(0), on(1), on(2, {"--fail", "3"})});
  CHECK(watched.says("node-0: node-0 on host0, process "));
  CHECK(watched.says("node-1: node-1 on host1, process "));
  REQUIRE(watched.says("node-0: works"));
  REQUIRE(watched.says("node-1: works"));
  auto ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("node-2").how
        == "node node-2 (host2) ended with exit code 3: cannot find its head");
  shell("kill -9 " + watched.process("node-1"));
  ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("node-1").how == "node node-1 (host1) was killed by signal 9 (Killed): works");
  CHECK(launcher.poll().empty());
  launcher.stop(seconds(30));
  ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("node-0").good);
  CHECK(watched.text().find("node-0: goes") != std::string::npos);
  CHECK(comes_to(on_hosts(kRuns), ""));
  CHECK(shell(on_hosts("sockets_on_hosts; on_host 0 find /dev/shm -type f")) == "");
}

TEST_CASE("Hosts that mpirun cannot reach and nodes that do not stop are reported") {
  const RootAllowed root;
  Watched watched;
  MpiLauncher launcher(watched.settings(), mpi());
  const NodeStart nobody{.name = "nobody", .host = "10.77.0.99", .arguments = {"node"}};
  launcher.start({on(0), nobody});
  auto ends = watched.ends(launcher, 2);
  REQUIRE(ends.size() == 2);
  CHECK_FALSE(ends.at("nobody").good);
  CHECK_FALSE(ends.at("node-0").good);
  CHECK(watched.text().find("10.77.0.99") != std::string::npos);
  launcher.start({on(0), nobody}); // each with an mpirun of its own
  ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.contains("nobody"));
  CHECK(watched.says("node-0: works"));
  launcher.stop(seconds(30));
  CHECK(watched.ends(launcher, 1).size() == 1);

  MpiLauncher stubborn(watched.settings(), mpi());
  stubborn.start({on(0, {"--stubborn"})});
  REQUIRE(watched.says("node-0: works", 2));
  stubborn.stop(seconds(1));
  ends = watched.ends(stubborn, 1);
  REQUIRE(ends.size() == 1);
  CHECK_FALSE(ends.at("node-0").good);
  CHECK(comes_to(on_hosts(kRuns), ""));
  CHECK_THROWS_AS(launcher.start({{.name = "a", .host = ""}}), std::invalid_argument);
}
