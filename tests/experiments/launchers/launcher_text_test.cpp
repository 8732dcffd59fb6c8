#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include <fstream>

#include "experiments/launchers/command_text.hpp"
#include "experiments/launchers/host_files.hpp"
#include "experiments/launchers/mpi_launcher.hpp"
#include "experiments/launchers/output_lines.hpp"
#include "experiments/launchers/slurm.hpp"
#include "experiments/launchers/ssh_launcher.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::experiments::launchers;

using Names = std::vector<std::string>;

TEST_CASE("A command is printed with shell quoting and without its secrets") {
  CHECK(command_text({"ssh", "-p", "22", "a b", "it's", ""}) == R"(ssh -p 22 'a b' 'it'\''s' '')");
  CHECK(command_text({"node", "--token", "abc", "x"}) == "node --token … x");
  CHECK(command_text({"node", "--secret-key=abc", "TROUPE_TOKEN=abc", "x"})
        == "node --secret-key=… TROUPE_TOKEN=… x");
  CHECK(command_text({"node", "--keys", "/home/token/keys", "x"})
        == "node --keys /home/token/keys x");
}

TEST_CASE("A newline, after which a host would read another command, is refused") {
  CHECK_THROWS_WITH_AS(SshLauncher({}, {.ssh = "/bin/true", .program = "a|\nword |touch"}),
                       doctest::Contains("ssh.program is "), std::invalid_argument);
  CHECK_NOTHROW(SshLauncher({}, {.ssh = "/bin/true"}));
}

TEST_CASE("ssh gets the paths of its files in quotes, with no percent sign to expand") {
  SshLauncher launcher({}, {.ssh = "/bin/false",
                            .identity_file = "/a key/id",
                            .known_hosts = "/our hosts/100%",
                            .program = "/bin/true"});
  launcher.start({{.name = "a", .host = "b"}});
  const auto ends = launcher.poll();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].how.find(R"(-o 'UserKnownHostsFile="/our hosts/100%%"')") != std::string::npos);
  CHECK(ends[0].how.find(R"(-o 'IdentityFile="/a key/id"')") != std::string::npos);
}

TEST_CASE("A missing program is reported with the setting that names it") {
  CHECK(find_program("bash", "the shell", "install it").ends_with("/bash"));
  CHECK_THROWS_WITH_AS(
      find_program("no-such-program", "mpi.mpirun", "install openmpi-bin"),
      "mpi.mpirun: there is no program \"no-such-program\" on the PATH; install openmpi-bin",
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(find_program("/no/such/program", "ssh.program", "name another"),
                       "ssh.program is \"/no/such/program\"; it must be a program; name another",
                       std::invalid_argument);
}

TEST_CASE("A Slurm node list is expanded") {
  CHECK(parse_node_list("node1") == Names{"node1"});
  CHECK(parse_node_list("gpu1,node[01-03,7],b")
        == Names{"gpu1", "node01", "node02", "node03", "node7", "b"});
  CHECK(parse_node_list("n[8-11]") == Names{"n8", "n9", "n10", "n11"});
  CHECK(parse_node_list("rack[0-1]n[1-2]-x")
        == Names{"rack0n1-x", "rack0n2-x", "rack1n1-x", "rack1n2-x"});
  CHECK(parse_node_list("n[00001-65536]").size() == 65'536);
}

TEST_CASE("An invalid Slurm node list is refused") {
  for (const char* bad :
       {"", ",", "a,", "n[", "n]", "n[1", "n[]", "n[2-1]", "n[a-b]", "n[1-]", "n[[1]]", "n[-1]",
        "n[1--2]", "n[0-65536]", "a[1-999]b[1-999]", "n[1-99999999999999999999]"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_node_list(bad), std::invalid_argument);
  }
}

TEST_CASE("The libraries are those that ldd names, except the C library's") {
  const auto found = libraries_of(
      {"\tlinux-vdso.so.1 (0x00007ffc)", "\tlibown.so => /opt/a b/libown.so (0x00007f12)",
       "\tlibc.so.6 => /lib/libc.so.6 (0x00007f12)", "\t/lib64/ld-linux-x86-64.so.2 (0x00007f12)"});
  REQUIRE(found.size() == 1);
  CHECK(found[0].first == "libown.so");
  CHECK(found[0].second == "/opt/a b/libown.so");
  CHECK_THROWS_WITH_AS(
      libraries_of({"\tlibown.so => not found"}),
      "the library libown.so that the nodes' program loads is not found on this host",
      std::invalid_argument);
}

TEST_CASE("A process that writes as fast as its output is read does not keep the reader") {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
  const std::string text = std::string(1000, 'x') + "\n";
  const auto write_line = [&] {
    return ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
  };
  REQUIRE(write_line());
  OutputLines lines;
  constexpr int kEndless = 100'000;
  int shown = 0;
  lines.read(ends[0], [&](std::string_view) {
    if (++shown < kEndless)
      CHECK(write_line());
  });
  CHECK(shown < kEndless);
  const int before = shown;
  lines.read(ends[0], [&](std::string_view line) {
    CHECK(line.size() == 1000);
    ++shown;
  });
  CHECK(shown == before + 1); // the rest is read later
  close_if_open(ends[0]);
  close_if_open(ends[1]);
}

namespace {

void write_keys_and_run(const TemporaryFolder& folder) {
  std::filesystem::create_directories(folder / "keys");
  std::ofstream(folder / "keys/a") << "a";
  std::ofstream(folder / "keys/b") << "b";
  std::ofstream(folder / "run.textproto") << "c";
}

} // namespace

TEST_CASE("An argument is the path of its copy if any file under it was copied") {
  const TemporaryFolder folder;
  write_keys_and_run(folder);
  ChildProcesses children;
  const HostFiles files(children, "", false, {folder / "keys", folder / "run.textproto"});
  REQUIRE(files.all().size() == 3);
  CHECK(files.all()[2].sha256
        == "2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6");
  CHECK(files.argument((folder / "keys").string(), {false, true, false}, "/there")
        == "/there/files/0/keys");
  CHECK(files.argument((folder / "keys").string(), {false, false, true}, "/there")
        == folder / "keys");
  CHECK(files.argument((folder / "run.textproto").string(), {false, false, true}, "/there")
        == "/there/files/1/run.textproto");
  CHECK(files.argument("other", {true, true, true}, "/there") == "other");
  CHECK_THROWS_AS(HostFiles(children, "", false, {folder / "nothing"}), std::invalid_argument);
}

TEST_CASE("A host that lacks one file of a folder gets the whole folder") {
  const TemporaryFolder folder;
  write_keys_and_run(folder);
  ChildProcesses children;
  const HostFiles files(children, "", false, {folder / "keys", folder / "run.textproto"});
  REQUIRE(files.all().size() == 3);
  CHECK(files.to_copy({false, true, false}) == std::vector<bool>{true, true, false});
  CHECK(files.to_copy({false, false, true}) == std::vector<bool>{false, false, true});
  CHECK(files.to_copy({false, false, false}) == std::vector<bool>{false, false, false});
}

TEST_CASE("A host that lacks data also gets the program, next to which the data are found") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "suite");
  std::ofstream(folder / "suite/a.xml") << "a";
  std::ofstream(folder / "program") << "p";
  std::ofstream(folder / "other") << "o";
  ChildProcesses children;
  const HostFiles files(children, folder / "program", true, {folder / "other"},
                        {{folder / "suite", "models"}});
  REQUIRE(files.all().size() == 3);
  CHECK(files.all()[0].copy == "bin/program");
  CHECK(files.all()[1].copy == "models/a.xml");
  CHECK(files.to_copy({false, true, false}) == std::vector<bool>{true, true, false});
  CHECK(files.to_copy({true, false, true}) == std::vector<bool>{true, false, true});
}

TEST_CASE("Hosts are read from a host file in its order") {
  const TemporaryFolder folder;
  std::ofstream(folder / "hosts") << "# ours\n\nb slots=4\nuser@a max_slots=2 # last\n";
  CHECK(read_hostfile(folder / "hosts") == Names{"b", "a"});
  std::ofstream(folder / "none") << "# nothing\n";
  CHECK_THROWS_AS(read_hostfile(folder / "none"), std::invalid_argument);
  CHECK_THROWS_AS(read_hostfile(folder / "missing"), std::invalid_argument);
}
