#include <filesystem>
#include <fstream>
#include <thread>

#include "experiments/launchers/mpi_launcher.hpp"
#include "experiments/launchers/ray_launcher.hpp"
#include "experiments/launchers/slurm.hpp"
#include "experiments/launchers/ssh_launcher.hpp"
#include "tests/experiments/launchers/launcher_fixture.hpp"
#include "tests/scoped_variable.hpp"
#include "tests/temporary_folder.hpp"

// The launchers beside scripts that stand in for ssh, srun, mpirun and the package ray.

using namespace troupe;
using namespace troupe::experiments::launchers;
using std::chrono::hours;
using std::chrono::seconds;
namespace fs = std::filesystem;

namespace {

const char* const kProgram = "/bin/true"; // the nodes' program, which never runs
const char* const kWaiting = "echo asked\nexec tail -f /dev/null\n";

std::string script(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << "#!/bin/bash\n" << text;
  fs::permissions(file, fs::perms::owner_all);
  return file.string();
}

NodeStart on(const std::string& host) {
  return {.name = "on-" + host, .host = host, .arguments = {"node"}};
}

/// mpirun refuses to run as root without them.
struct RootAllowed {
  ScopedVariable allowed{"OMPI_ALLOW_RUN_AS_ROOT", "1"};
  ScopedVariable confirmed{"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"};
};

/// Stops a start that waits for its node, once the output contains `sign`.
void check_start_is_stopped(Watched& watched, Launcher& launcher, const std::string& sign) {
  std::jthread starts([&](const std::stop_token& ended) { launcher.start({on("host")}, ended); });
  CHECK(watched.says(sign));
  starts.request_stop();
  starts.join(); // would take a day
  launcher.stop(seconds(0));
  const auto ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK_FALSE(ends.at("on-host").good);
}

} // namespace

TEST_CASE("A start over SSH that is stopped does not wait for its hosts") {
  const TemporaryFolder folder;
  Watched watched;
  SshLauncher launcher(watched.settings(), {.ssh = script(folder / "ssh", kWaiting),
                                            .program = kProgram,
                                            .connect_limit = hours(24),
                                            .start_limit = hours(24)});
  check_start_is_stopped(watched, launcher, "on-host: asked");
}

TEST_CASE("A start in a Slurm job that is stopped does not wait for its step") {
  const TemporaryFolder folder;
  script(folder / "srun", kWaiting);
  script(folder / "scancel", "");
  const ScopedVariable path("PATH", folder.path().string() + ":/usr/bin:/bin");
  const ScopedVariable job("SLURM_JOB_ID", "1");
  const ScopedVariable nodes("SLURM_JOB_NODELIST", "host");
  Watched watched;
  SlurmLauncher launcher(watched.settings(kProgram), hours(24));
  check_start_is_stopped(watched, launcher, "on-host: asked");
}

TEST_CASE("A start with mpirun that is stopped does not wait for its hosts") {
  const TemporaryFolder folder;
  const RootAllowed root;
  Watched watched;
  MpiLauncher launcher(watched.settings(kProgram),
                       {.mpirun = script(folder / "mpirun", kWaiting), .start_limit = hours(24)});
  check_start_is_stopped(watched, launcher, "mpirun: asked");
}

TEST_CASE("A start in Ray that is stopped gives up the resources that it waits for") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "ray/util");
  std::ofstream(folder / "ray/__init__.py") << R"py(
def init(**settings): pass
def remote(what): return what
def available_resources(): return {}
def shutdown(): pass
)py";
  std::ofstream(folder / "ray/util/__init__.py");
  std::ofstream(folder / "ray/util/placement_group.py") << R"py(
import threading

class Group:
    def wait(self, seconds):
        print("reserving", flush=True)
        return threading.Event().wait(seconds)

def placement_group(bundles, strategy): return Group()
def remove_placement_group(group): print("given up", flush=True)
)py";
  std::ofstream(folder / "ray/util/scheduling_strategies.py")
      << "class PlacementGroupSchedulingStrategy: pass\n";
  const ScopedVariable packages("PYTHONPATH", folder.path().string());
  Watched watched;
  RayLauncher launcher(watched.settings(kProgram), {.start_limit = hours(24)});
  check_start_is_stopped(watched, launcher, "ray: reserving");
  CHECK(watched.says("ray: given up"));
}

TEST_CASE("After a host has died, mpirun starts the nodes of the other hosts again") {
  const TemporaryFolder folder;
  const RootAllowed root;
  Watched watched;
  MpiLauncher launcher(watched.settings(kProgram), {.mpirun = script(folder / "mpirun", R"sh(
case " $* " in *" --host dead "*) echo "dead: no route to host"; exit 1 ;; esac
trap 'exit 0' USR1
echo "[1,0]<stdout>:troupe-mpi-node started"
tail -f /dev/null &
wait
)sh")});
  launcher.start({on("dead"), on("alive")}); // as one job, which a host without a route ends
  CHECK(watched.ends(launcher, 2).size() == 2);
  launcher.start({on("dead"), on("alive")});
  auto ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.at("on-dead").how.ends_with("dead: no route to host"));
  launcher.stop(seconds(60));
  ends = watched.ends(launcher, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.contains("on-alive"));
}
