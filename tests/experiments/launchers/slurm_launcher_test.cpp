#include <optional>

#include "experiments/launchers/slurm.hpp"
#include "tests/experiments/launchers/launcher_fixture.hpp"
#include "tests/scoped_variable.hpp"

using namespace troupe;
using namespace troupe::experiments::launchers;
using std::chrono::seconds;

namespace {

NodeStart on(int host, std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.begin(), "node");
  const std::string number = std::to_string(host);
  return {.name = "node-" + number, .host = "here" + number, .arguments = std::move(arguments)};
}

/// An allocation of the three nodes, as in a batch script or from salloc.
class Allocation {
public:
  Allocation() {
    const std::string said = shell("sbatch --parsable -N 3 -o /dev/null --wrap \"sleep 1000\"");
    id_ = said.substr(0, said.find('\n'));
    REQUIRE(comes_to("squeue -h -o %T -j " + id_, "RUNNING\n"));
    job_.emplace("SLURM_JOB_ID", id_);
  }
  ~Allocation() { shell("scancel " + id_); }

private:
  std::string id_;
  std::optional<ScopedVariable> job_;
  ScopedVariable hosts_{"SLURM_JOB_NODELIST", "here[0-2]"};
};

/// Lists the nodes of this Slurm's running jobs, because other tests have nodes of the same name.
const char* const kRuns =
    "for process in $(pgrep -x stand_in_node); do "
    "grep -qz ^SLURM_JOB_ID= /proc/$process/environ && ps -o pid=,ppid=,stat=,args= $process; "
    "done 2>/dev/null; true";

} // namespace

TEST_CASE(
    "srun starts one node on each allocated host, one may die, and the others stop on request") {
  const Allocation allocation;
  CHECK(allocated_nodes() == std::vector<std::string>{"here0", "here1", "here2"});
  Watched watched;
  SlurmLauncher launcher(watched.settings());
  launcher.start({on(0), on(1), on(2, {"--fail", "3"})});
  CHECK(watched.says("node-0: node-0 on "));
  CHECK(watched.says("node-1: node-1 on "));
  REQUIRE(watched.says("node-0: works"));
  REQUIRE(watched.says("node-1: works"));
  auto ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("node-2").how
        == "node node-2 (here2) ended with exit code 3: cannot find its head");
  shell("kill -9 " + watched.process("node-1"));
  ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("node-1").how == "node node-1 (here1) was killed by signal 9 (Killed): works");
  CHECK(launcher.poll().empty());
  launcher.start({on(2)});
  CHECK(watched.says("node-2: works"));
  launcher.stop(seconds(30));
  ends = watched.ends(launcher, 2);
  REQUIRE(ends.size() == 2);
  CHECK(ends.at("node-0").good);
  CHECK(ends.at("node-2").good);
  CHECK(watched.says("node-0: goes"));
  CHECK(comes_to(kRuns, ""));
}

TEST_CASE("A node that does not stop is killed, and a node outside the allocation is refused") {
  const Allocation allocation;
  Watched watched;
  SlurmLauncher launcher(watched.settings());
  launcher.start({on(0, {"--stubborn"})});
  REQUIRE(watched.says("node-0: works"));
  launcher.stop(seconds(1));
  const auto ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK_FALSE(ends.at("node-0").good);
  CHECK(comes_to(kRuns, ""));
  CHECK_THROWS_WITH_AS(
      launcher.start({on(7)}),
      doctest::Contains(
          "node node-7 is on \"here7\", which is not among the 3 nodes of this Slurm job"),
      std::invalid_argument);
}

TEST_CASE("Outside an allocation, the Slurm launcher is refused") {
  Watched watched;
  CHECK_THROWS_WITH_AS(SlurmLauncher(watched.settings()),
                       doctest::Contains("SLURM_JOB_ID is not set"), std::invalid_argument);
}
