#include "experiments/launchers/local_launcher.hpp"

#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "tests/experiments/launchers/launcher_fixture.hpp"

using namespace troupe::experiments::launchers;
using std::chrono::seconds;

namespace {

bool is_gone(const std::string& process) {
  return comes_to("kill -0 " + process + " 2>/dev/null && echo runs || true", "");
}

} // namespace

TEST_CASE("Nodes on this host get their names, stop on request, and their ends are reported") {
  Watched watched;
  LocalLauncher launcher(watched.settings());
  launcher.start({{.name = "a", .arguments = {"node"}}, {.name = "b", .arguments = {"node"}}});
  REQUIRE(watched.says("a: works"));
  REQUIRE(watched.says("b: works"));
  CHECK(launcher.poll().empty());
  const std::string a = watched.process("a");
  launcher.stop(seconds(60));
  const auto ends = watched.ends(launcher, 2);
  REQUIRE(ends.size() == 2);
  CHECK(ends.at("a").good);
  CHECK(ends.at("b").good);
  CHECK(watched.says("a: goes"));
  CHECK(is_gone(a));
}

TEST_CASE("A node that fails is reported with its command, exit code and last line") {
  Watched watched;
  LocalLauncher launcher(watched.settings());
  launcher.start({{.name = "a", .arguments = {"node", "--fail", "3", "--token", "hidden"}}});
  const auto ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  const std::string& how = ends.at("a").how;
  CHECK_FALSE(ends.at("a").good);
  CHECK(how.starts_with("node a: `"));
  CHECK(how.ends_with(
      "stand_in_node node --fail 3 --token …` ended with exit code 3: cannot find its head"));
  CHECK(ends.at("a").last_lines.back() == "cannot find its head");
}

TEST_CASE("A node that does not stop is killed with its child processes, and this is reported") {
  Watched watched;
  LocalLauncher launcher(watched.settings());
  launcher.start({{.name = "a", .arguments = {"node", "--stubborn", "--orphan"}}});
  REQUIRE(watched.says("a: works"));
  const std::string group = "-" + watched.process("a");
  launcher.stop(std::chrono::milliseconds(50));
  const auto ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("a").how.find("had not exited 0 s after SIGTERM and was killed by signal 9")
        != std::string::npos);
  CHECK(is_gone("-- " + group));
}

TEST_CASE("A node can be started again and ends with its launcher") {
  Watched watched;
  std::string second;
  {
    LocalLauncher launcher(watched.settings());
    launcher.start({{.name = "a", .arguments = {"node", "--orphan"}}});
    REQUIRE(watched.says("a: works"));
    const std::string first = watched.process("a");
    ::kill(std::stoi(first), SIGKILL);
    const auto ends = watched.ends(launcher, 1);
    REQUIRE(ends.size() == 1);
    CHECK(ends.at("a").how.ends_with("was killed by signal 9 (Killed): works"));
    CHECK(is_gone("-- -" + first));
    launcher.start({{.name = "a", .arguments = {"node", "--keys", "/etc/ssl"}}});
    REQUIRE(watched.says("keys /etc/ssl"));
    REQUIRE(watched.says("a: works", 2));
    second = watched.process("a");
  }
  CHECK(is_gone("-- -" + second));
}

TEST_CASE("Nodes end when their launcher is killed") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  std::FILE* holder =
      ::popen(("exec " + self + " --no-skip --test-case=\"holds a node\"").c_str(), "r");
  REQUIRE(holder != nullptr);
  char line[4096];
  std::string said;
  while (said.find("works") == std::string::npos
         && std::fgets(line, sizeof line, holder) != nullptr)
    said += line;
  const std::size_t at = said.find("process ");
  REQUIRE(at != std::string::npos);
  const std::string node = std::to_string(std::stol(said.substr(at + 8)));
  shell("kill -9 $(ps -o ppid= -p " + node + ")");
  CHECK(is_gone(node));
  ::pclose(holder);
}

TEST_CASE("holds a node" * doctest::skip()) {
  Watched watched;
  LocalLauncher launcher(watched.settings());
  launcher.start({{.name = "a", .arguments = {"node"}}});
  REQUIRE(watched.says("a: works"));
  std::puts(watched.text().c_str());
  std::fflush(stdout);
  watched.says("what nobody says");
}

TEST_CASE("A missing program is refused") {
  Watched watched;
  LocalLauncher launcher(watched.settings("/no/such/troupe"));
  CHECK_THROWS_AS(launcher.start({{.name = "a"}}), std::invalid_argument);
}
