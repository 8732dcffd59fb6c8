#include "experiments/launchers/make_launcher.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "experiments/launchers/local_launcher.hpp"
#include "experiments/launchers/ssh_launcher.hpp"
#include "tests/scoped_variable.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::experiments;
using namespace troupe::experiments::launchers;

namespace {

std::vector<std::string> hosts_of(const Cluster& cluster) {
  std::vector<std::string> hosts;
  for (const NodeStart& start :
       node_starts(cluster, launcher_of(cluster), cluster_nodes(cluster, {}), {"node"}))
    hosts.push_back(start.name + "@" + start.host);
  return hosts;
}

/// A cluster whose head can be reached from other hosts.
Cluster cluster(const std::string& text) {
  return parse_cluster("keys: \"keys\" head { listen: \"10.0.0.9:4000\" } " + text, "c");
}

using Names = std::vector<std::string>;

} // namespace

TEST_CASE("A cluster's nodes are started on the hosts that its launcher expects") {
  CHECK(
      hosts_of(cluster(
          R"(ssh {} node { name: "a" address: "10.0.0.1" cores: 1 } node { name: "b" cores: 1 address: "gpu7" })"))
      == Names{"a@10.0.0.1", "b@gpu7"});
  CHECK(hosts_of(cluster(R"(local {} node { name: "a" count: 2 cores: 1 })"))
        == Names{"a-0@", "a-1@"});
  const Cluster ray = cluster(R"(ray {} node { name: "a" count: 2 cores: 3 gpus: 1 })");
  CHECK(hosts_of(ray) == Names{"a-0@", "a-1@"});
  const auto starts = node_starts(ray, launcher_of(ray), cluster_nodes(ray, {}), {"node"});
  CHECK(starts[1].cores == 3);
  CHECK(starts[1].gpus == 1);
}

TEST_CASE("Nodes take the hosts of Slurm and of a host file in order") {
  const TemporaryFolder folder;
  std::ofstream(folder / "hosts") << "x\ny slots=2\n";
  const std::string mpi =
      "mpi { hostfile: \"" + (folder / "hosts").string() + "\" } node { name: \"n\" count: ";
  CHECK(hosts_of(cluster(mpi + "2 cores: 1 }")) == Names{"n-0@x", "n-1@y"});
  CHECK_THROWS_WITH_AS(hosts_of(cluster(mpi + "3 cores: 1 }")),
                       doctest::Contains("the cluster has 3 nodes, and "), std::invalid_argument);
  const Cluster slurm = cluster(R"(slurm {} node { name: "n" count: 2 cores: 1 })");
  const ScopedVariable hosts("SLURM_JOB_NODELIST", "gpu[7-8]");
  {
    const ScopedVariable job("SLURM_JOB_ID", "1");
    CHECK(hosts_of(slurm) == Names{"n-0@gpu7", "n-1@gpu8"});
  }
  const ScopedVariable no_job("SLURM_JOB_ID", {});
  CHECK_THROWS_WITH_AS(hosts_of(slurm), doctest::Contains("this Slurm job has 0 hosts"),
                       std::invalid_argument);
}

TEST_CASE("The requested kind of launcher is created") {
  const Cluster ssh = cluster(R"(ssh {} node { name: "a" address: "10.0.0.1" cores: 1 })");
  CHECK(dynamic_cast<launchers::SshLauncher*>(make_launcher(ssh, LauncherKind::ssh, {}).get())
        != nullptr);
  CHECK(dynamic_cast<NoLauncher*>(make_launcher(ssh, LauncherKind::none, {}).get()) != nullptr);
  CHECK(dynamic_cast<launchers::LocalLauncher*>(make_launcher(ssh, LauncherKind::local, {}).get())
        != nullptr);
  CHECK_THROWS_WITH_AS(make_launcher(ssh, LauncherKind::kubernetes, {}),
                       doctest::Contains("--manifests DIR"), std::invalid_argument);
}
