#include "experiments/launchers/ssh_launcher.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/experiments/launchers/launcher_fixture.hpp"

using namespace troupe::experiments::launchers;
using std::chrono::milliseconds;
using std::chrono::seconds;
namespace fs = std::filesystem;

namespace {

const char* const kLeft = "left_on_hosts; ls -A /run/hosts/remote";

SshSettings ssh() {
  return {.port = std::stoi(std::getenv("TROUPE_SSH_PORT")),
          .identity_file = std::getenv("TROUPE_SSH_IDENTITY"),
          .known_hosts = std::getenv("TROUPE_SSH_KNOWN_HOSTS"),
          .config = "/dev/null",
          .folder = "/run/hosts/remote",
          .grace = seconds(2),
          .lost = seconds(4)};
}

NodeStart on(int host, std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.begin(), "node");
  return {.name = "host" + std::to_string(host),
          .host = "10.77.0." + std::to_string(host + 1),
          .arguments = std::move(arguments)};
}

} // namespace

TEST_CASE("Files that hosts lack are copied, nodes run and stop, and nothing is left behind") {
  const fs::path keys = "/run/hosts/keys";
  fs::create_directory(keys);
  std::ofstream(keys / "secret") << "KEEP-THIS-SECRET";
  fs::permissions(keys, fs::perms::owner_all);
  fs::create_directories("/run/hosts/data/deep");
  std::ofstream("/run/hosts/data/one") << "a-model";
  std::ofstream("/run/hosts/data/deep/two") << "";
  Watched watched;
  auto settings = watched.settings();
  shell(on_hosts("for n in 0 1; do on_host $n mount -t tmpfs tmpfs /run/hosts/keys; "
                 "on_host $n mount -t tmpfs tmpfs /run/hosts/data; done"));
  settings.files = {keys};
  settings.data = {{"/run/hosts/data", "models"}};
  settings.environment = {{"TROUPE_KEYS", keys.string()}};
  SshLauncher launcher(settings, ssh());
  launcher.start({on(0, {"--keys", keys.string()}), on(1, {"--keys", keys.string()})});
  for (const std::string name : {"host0", "host1"}) {
    REQUIRE(watched.says(name + ": works"));
    CHECK(watched.says(name + ": " + name + " on " + name + ", process "));
    CHECK(watched.says(name + ": program /run/hosts/remote/troupe-node."));
    CHECK(watched.says(name + ": data a-model"));
    CHECK(watched.says(name + ": keys /run/hosts/remote/troupe-node."));
    CHECK(watched.says("/files/0/keys mode 700"));
    CHECK(watched.says(name + ": key secret mode 600 of 16 letters"));
  }
  CHECK(watched.text().find("troupe-") != std::string::npos);
  CHECK(launcher.poll().empty());
  CHECK(shell("cat /proc/[0-9]*/cmdline | grep -c KEEP[-]THIS").substr(0, 1) == "0");
  launcher.stop(seconds(30));
  const auto ends = watched.ends(launcher, 2);
  REQUIRE(ends.size() == 2);
  CHECK(ends.at("host0").good);
  CHECK(ends.at("host1").good);
  CHECK(watched.text().find("host1: goes") != std::string::npos);
  CHECK(shell(on_hosts(kLeft)) == "");
  CHECK(watched.text().find("KEEP-THIS") == std::string::npos);
  shell(on_hosts("for n in 0 1; do on_host $n umount /run/hosts/keys /run/hosts/data; done"));
}

TEST_CASE("Files that a host has are copied only if they differ") {
  fs::create_directory("/run/hosts/programs");
  std::ofstream("/run/hosts/programs/node") << "#!/bin/bash\necho program $0 of $TROUPE_NODE_NAME "
                                               "in $PWD, $A_VALUE\necho works\nsleep 1000 & wait\n";
  std::ofstream("/run/hosts/programs/other")
      << "#!/bin/bash\necho program $0 of $TROUPE_NODE_NAME in $PWD, $A_VALUE\necho fails\nsleep "
         "1000 & wait\n";
  shell("chmod 755 /run/hosts/programs/*; "
        + on_hosts("on_host 1 mount --bind /run/hosts/programs/other /run/hosts/programs/node"));
  Watched watched;
  auto settings = watched.settings("/run/hosts/programs/node");
  settings.environment = {{"A_VALUE", " it's \"one\" "}};
  {
    SshLauncher launcher(settings, ssh());
    launcher.start({on(0), on(1)});
    CHECK(watched.says("host0: program /run/hosts/programs/node of host0 in "
                       + fs::current_path().string() + ", it's \"one\""));
    CHECK(watched.says("host1: program /run/hosts/remote/troupe-node."));
    CHECK(watched.says("/bin/node of host1"));
    CHECK(watched.says("host1: works"));
  }
  CHECK(shell(on_hosts(kLeft)) == "");
  shell(on_hosts("on_host 1 umount /run/hosts/programs/node"));
}

TEST_CASE("A node that is started again gets files that have changed since") {
  const fs::path keys = "/run/hosts/rotated";
  fs::create_directory(keys);
  std::ofstream(keys / "secret") << "old";
  Watched watched;
  auto settings = watched.settings();
  shell(on_hosts("on_host 0 mount -t tmpfs tmpfs /run/hosts/rotated"));
  settings.files = {keys};
  SshLauncher launcher(settings, ssh());
  const NodeStart node = on(0, {"--keys", keys.string(), "--fail", "3"});
  launcher.start({node});
  REQUIRE(watched.ends(launcher, 1).size() == 1);
  CHECK(watched.says("host0: key secret mode 600 of 3 letters"));
  std::ofstream(keys / "secret") << "renewed";
  std::ofstream(keys / "retired") << "old";
  launcher.start({node});
  REQUIRE(watched.ends(launcher, 1).size() == 1);
  CHECK(watched.text().find("host0: key secret mode 600 of 7 letters") != std::string::npos);
  CHECK(watched.text().find("host0: key retired mode 600 of 3 letters") != std::string::npos);
  launcher.stop(seconds(1));
  shell(on_hosts("on_host 0 umount /run/hosts/rotated"));
}

TEST_CASE("Each unusable host is reported with the reason, and the other hosts are used") {
  Watched watched;
  auto settings = ssh();
  settings.connect_limit = seconds(3);
  SshLauncher launcher(watched.settings(), settings);
  const auto nobody = NodeStart{.name = "nobody", .host = "10.77.0.99", .arguments = {"node"}};
  const auto stranger = NodeStart{.name = "stranger", .host = "10.77.0.254", .arguments = {"node"}};
  launcher.start({on(0), nobody, stranger});
  const auto ends = watched.ends(launcher, 2);
  REQUIRE(ends.size() == 2);
  CHECK(ends.at("nobody").how.starts_with("node nobody (10.77.0.99): `"));
  CHECK(ends.at("nobody").how.find(
            " 10.77.0.99 'exec bash -s'` ended with exit code 255: ssh: connect to host 10.77.0.99")
        != std::string::npos);
  CHECK(ends.at("stranger").how.find("Connection refused") != std::string::npos);
  CHECK(watched.says("host0: works"));

  settings.known_hosts = "/dev/null";
  SshLauncher unknown(watched.settings(), settings);
  unknown.start({on(1)});
  CHECK(watched.ends(unknown, 1)["host1"].how.find("Host key verification failed")
        != std::string::npos);

  settings = ssh();
  settings.folder = "/proc";
  SshLauncher nowhere(watched.settings(), settings);
  nowhere.start({on(1)});
  CHECK(watched.ends(nowhere, 1)["host1"].how.find("cannot make a folder in /proc")
        != std::string::npos);

  settings = ssh();
  settings.program = "/no/such/troupe";
  SshLauncher nothing(watched.settings(), settings);
  nothing.start({on(1)});
  const std::string how = watched.ends(nothing, 1)["host1"].how;
  CHECK(how.find("ended with exit code 127: env: ") != std::string::npos);
  CHECK(how.find("/no/such/troupe") != std::string::npos);
  launcher.stop(seconds(30));
}

TEST_CASE("A host that answers too late is abandoned") {
  Watched watched;
  auto settings = ssh();
  settings.start_limit = milliseconds(700);
  shell(on_hosts("kill -STOP $(cat /run/hosts/host2.sshd_pid)"));
  SshLauncher launcher(watched.settings(), settings);
  launcher.start({on(2)});
  const auto ends = watched.ends(launcher, 1);
  shell(on_hosts("kill -CONT $(cat /run/hosts/host2.sshd_pid)"));
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("host2").how.starts_with(
      "node host2 (10.77.0.3) could not be started: timed out trying to connect"));
}

TEST_CASE("A node keeps running while its launcher sends heartbeats") {
  Watched watched;
  auto settings = ssh();
  settings.lost = seconds(1);
  SshLauncher launcher(watched.settings(), settings);
  launcher.start({on(0)});
  REQUIRE(watched.says("host0: works"));
  CHECK(comes_to("[ $(ps -o etimes= -p " + watched.process("host0") + ") -gt 3 ] && echo lives",
                 "lives\n"));
  CHECK(launcher.poll().empty());
  launcher.stop(seconds(30));
  CHECK(shell(on_hosts(kLeft)) == "");
}

TEST_CASE("A node that ends is reported with its last line, and its folder is removed") {
  Watched watched;
  SshLauncher launcher(watched.settings(), ssh());
  launcher.start({on(0, {"--fail", "3"}), on(1)});
  const auto ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("host0").how
        == "node host0 (10.77.0.1) ended with exit code 3: cannot find its head");
  REQUIRE(watched.says("host1: works"));
  shell("kill -9 " + watched.process("host1"));
  const auto killed = watched.ends(launcher, 1);
  REQUIRE(killed.size() == 1);
  CHECK(killed.at("host1").how == "node host1 (10.77.0.2) was killed by signal 9 (Killed): works");
  CHECK(shell(on_hosts("processes_on_hosts; ls -A /run/hosts/remote")) == "");
  // The launcher leaves the shared memory of a killed process for its next start to find.
  shell(on_hosts("on_host 1 find /dev/shm -type f -delete"));

  launcher.start({on(0)}); // again, on the same host
  CHECK(watched.says("host0: works"));
  launcher.stop(seconds(30));
  CHECK(shell(on_hosts(kLeft)) == "");
}

TEST_CASE("A node that does not stop and a process that left its group are killed") {
  Watched watched;
  SshLauncher launcher(watched.settings(), ssh());
  launcher.start({on(0, {"--stubborn", "--runaway"})});
  REQUIRE(watched.says("host0: works"));
  launcher.stop(seconds(1));
  const auto ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK_FALSE(ends.at("host0").good);
  CHECK(shell(on_hosts("processes_on_hosts; ls -A /run/hosts/remote")) == "");
  shell(on_hosts("on_host 0 find /dev/shm -type f -delete"));
}

TEST_CASE("A disconnected host stops its node, and the launcher reports the lost connection") {
  Watched watched;
  SshLauncher launcher(watched.settings(), ssh());
  launcher.start({on(0), on(1)});
  REQUIRE(watched.says("host0: works"));
  REQUIRE(watched.says("host1: works"));
  shell(on_hosts("link_down 1"));
  const auto ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("host1").how.find("the connection is lost, and its host stops it within")
        != std::string::npos);
  CHECK(comes_to(on_hosts("processes_on_hosts | grep host1 || true; ls /run/hosts/remote | wc -l"),
                 "1\n")); // host0's
  shell(on_hosts("link_up 1"));
  launcher.stop(seconds(30));
  CHECK(shell(on_hosts(kLeft)) == "");
}

TEST_CASE("The launcher removes at the end what the host's shell could not remove") {
  Watched watched;
  SshLauncher launcher(watched.settings(), ssh());
  launcher.start({on(0, {"--runaway"})});
  REQUIRE(watched.says("host0: works"));
  shell("kill -9 $(ps -o ppid= -p " + watched.process("host0") + ")");
  REQUIRE(watched.ends(launcher, 1).size() == 1);
  launcher.stop(seconds(1));
  CHECK(launcher.poll().empty());
  CHECK(comes_to(on_hosts("processes_on_hosts; ls -A /run/hosts/remote"), ""));
  shell(on_hosts("on_host 0 find /dev/shm -type f -delete"));
}

TEST_CASE("holds nodes until it is killed" * doctest::skip()) {
  Watched watched;
  SshLauncher launcher(watched.settings(), ssh());
  launcher.start({on(0), on(1, {"--runaway"})});
  REQUIRE(watched.says("host0: works"));
  REQUIRE(watched.says("host1: works"));
  MESSAGE(watched.text());
  std::fflush(nullptr);
  std::puts(watched.text().c_str());
  std::fflush(nullptr);
  watched.says("what nobody says");
}
