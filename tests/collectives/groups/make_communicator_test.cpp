#include "tests/doctest_torch.hpp"

#include <algorithm>
#include <fstream>

#include "collectives/groups/make_communicator.hpp"
#include "collectives/rendezvous/group_trust.hpp"
#include "collectives/rendezvous/rendezvous.hpp"
#include "env/processes/forked.hpp"
#include "env/processes/start_program.hpp"
#include "tests/collectives/backends/mpirun.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/folders.hpp"
#include "tests/reserved_port.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

namespace troupe::collectives {
namespace {

std::string folder() {
  return in_build("tests/collectives/");
}

/// Starts `topology_process name` once per list of variables, all at once. Returns how many
/// succeeded.
int run_all(const std::string& name, const std::vector<std::vector<std::string>>& variables) {
  std::vector<pid_t> children;
  for (const auto& mine : variables) {
    children.push_back(start_program({folder() + "topology_process", name}, mine));
    REQUIRE(children.back() > 0);
  }
  int well = 0;
  for (const auto child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    well += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 1 : 0;
  }
  return well;
}

std::vector<std::vector<std::string>> as_torchrun(int size) {
  const auto port = std::to_string(reserved_port());
  std::vector<std::vector<std::string>> result;
  for (int rank = 0; rank < size; ++rank)
    result.push_back({"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(size),
                      "LOCAL_RANK=" + std::to_string(rank),
                      "LOCAL_WORLD_SIZE=" + std::to_string(size), "MASTER_ADDR=127.0.0.1",
                      "MASTER_PORT=" + port});
  return result;
}

std::vector<std::vector<std::string>> as_tf_config(int size) {
  std::string cluster;
  for (int rank = 0; rank < size; ++rank)
    cluster += (rank ? ", " : "") + ("\"127.0.0.1:" + std::to_string(reserved_port())) + "\"";
  std::vector<std::vector<std::string>> result;
  for (int rank = 0; rank < size; ++rank)
    result.push_back({"TF_CONFIG={\"cluster\": {\"worker\": [" + cluster
                      + "]}, \"task\": {\"type\": \"worker\", \"index\": " + std::to_string(rank)
                      + "}}"});
  return result;
}

std::string refusal(const std::string& name, const ProcessTopology& place) {
  return error_of([&] { make_communicator(name, place); });
}

/// Returns what a process of another user gets: 0, the store of the file; 1, a refusal.
int run_as_another(const std::string& path) {
  const int status = status_of_child([&] {
    constexpr uid_t kNobody = 65534;
    try {
      if (::setresuid(kNobody, kNobody, kNobody) == 0)
        open_rendezvous(path, {});
      return 0;
    } catch (const std::runtime_error&) {
      return 1;
    }
  });
  return WEXITSTATUS(status);
}

constexpr const char* kBackends[] = {"tcp", "shared_memory", "hierarchical", "auto"};

} // namespace

TEST_CASE("The same program runs under each backend with torchrun's variables") {
  for (const char* name : kBackends) {
    CAPTURE(name);
    CHECK(run_all(name, as_torchrun(3)) == 3);
  }
}

TEST_CASE(
    "The same program runs under each backend with a launcher's file and no rendezvous port") {
  for (const char* name : kBackends) {
    CAPTURE(name);
    const RendezvousFile rendezvous; // a new one for each group
    std::vector<std::vector<std::string>> variables;
    for (int rank = 0; rank < 3; ++rank)
      variables.push_back({"RANK=" + std::to_string(rank), "WORLD_SIZE=3",
                           "LOCAL_RANK=" + std::to_string(rank), "LOCAL_WORLD_SIZE=3",
                           "TROUPE_RENDEZVOUS=" + rendezvous.path()});
    CHECK(run_all(name, variables) == 3);
  }
}

TEST_CASE("A launcher's rendezvous file is private to its user and disappears with the launcher") {
  std::string path;
  {
    const RendezvousFile rendezvous;
    path = rendezvous.path();
    open_rendezvous(path, {})->set("key", std::string("value"));
    CHECK(open_rendezvous(path, {})->get_to_str("key") == "value");
    if (::geteuid() == 0) // only root can switch to another user
      CHECK(run_as_another(path) == 1);
  }
  CHECK_THROWS_WITH_AS(open_rendezvous(path, {}), doctest::Contains("TROUPE_RENDEZVOUS"),
                       std::runtime_error);
}

TEST_CASE("The same program runs under each backend with TF_CONFIG") {
  for (const char* name : kBackends) {
    CAPTURE(name);
    CHECK(run_all(name, as_tf_config(2)) == 2);
  }
}

TEST_CASE("The same program runs under each backend with a host file") {
  const TemporaryFolder files;
  for (const char* name : kBackends) {
    CAPTURE(name);
    const auto hosts = files / "hosts";
    std::ofstream(hosts) << "127.0.0.1:" << reserved_port() << " slots=3\n";
    std::vector<std::vector<std::string>> variables;
    for (int rank = 0; rank < 3; ++rank)
      variables.push_back(
          {"TROUPE_HOSTS=" + hosts.string(), "TROUPE_RANK=" + std::to_string(rank)});
    CHECK(run_all(name, variables) == 3);
  }
}

TEST_CASE("The same program runs under each backend with mpirun") {
  if (find_mpirun().empty() || !mpi_unavailable_reason().empty()) {
    MESSAGE("skipped: there is no mpirun, or no MPI in this build");
    return;
  }
  for (const char* name : {"mpi", "tcp", "shared_memory", "hierarchical", "auto"}) {
    CAPTURE(name);
    CHECK(run_under_mpi(3, {folder() + "topology_process", name}) == 0);
  }
}

TEST_CASE("A single process needs no rendezvous under any backend") {
  for (const char* name : {"auto", "tcp", "shared_memory", "hierarchical", "threads"}) {
    CAPTURE(name);
    const auto communicator = make_communicator(name, ProcessTopology());
    auto tensor = torch::ones({3});
    communicator->all_reduce(tensor, ReduceOp::mean);
    CHECK(torch::equal(tensor, torch::ones({3})));
  }
}

TEST_CASE("Ranks beyond loopback need the deployment's keys or a trusted network") {
  const TemporaryFolder files;
  const auto keys = files / "keys";
  std::filesystem::create_directory(keys);
  std::ofstream(keys / "curve.secret") << std::string(40, 'k');
  std::filesystem::permissions(keys / "curve.secret", std::filesystem::perms(0600));
  const auto run = [&](const std::string& more) { // 0.0.0.0: any host of the network would reach it
    auto variables = as_torchrun(2);
    for (auto& mine : variables) {
      mine.push_back("TROUPE_ADDRESS=0.0.0.0");
      mine.push_back(more);
    }
    return run_all("tcp", variables);
  };
  CHECK(run("TROUPE_KEYS=" + keys.string()) == 2);
  CHECK(run("TROUPE_TRUSTED_NETWORK=1") == 2);
  CHECK(run("TROUPE_TRUSTED_NETWORK=0") == 0);
}

TEST_CASE(
    "A rendezvous that other hosts can reach needs keys or a trusted network, also on one host") {
  ProcessTopology place;
  place.size = place.local_size = 2;
  place.rendezvous_host = "0.0.0.0";
  place.rendezvous_port = reserved_port();
  for (place.rank = 0; place.rank < 2; ++place.rank) {
    CAPTURE(place.rank);
    const auto text = refusal("shared_memory", place);
    CHECK(has(text, "0.0.0.0, the address of the rendezvous (MASTER_ADDR"));
    CHECK(has(text, "TROUPE_KEYS=DIR"));
  }
  const auto run = [&](const std::string& more) {
    auto variables = as_torchrun(2);
    for (auto& mine : variables) {
      std::replace(mine.begin(), mine.end(), std::string("MASTER_ADDR=127.0.0.1"),
                   std::string("MASTER_ADDR=0.0.0.0"));
      mine.push_back(more);
    }
    return run_all("shared_memory", variables);
  };
  CHECK(run("TROUPE_TRUSTED_NETWORK=1") == 2);
  CHECK(run("TROUPE_TRUSTED_NETWORK=0") == 0);
}

TEST_CASE("A key folder that others can read or that has no keys is refused with a remedy") {
  const TemporaryFolder files;
  const auto refused = [&] {
    return error_of<std::invalid_argument>([&] { read_group_secret(files.path().string()); });
  };
  CHECK(has(refused(), "troupe keys cluster DIR"));
  const auto file = files / "curve.secret";
  std::ofstream(file) << "short";
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  CHECK(has(refused(), "is not a key file"));
  std::ofstream(file) << std::string(40, 'k');
  CHECK(refused().empty());
  std::filesystem::permissions(file, std::filesystem::perms(0640));
  CHECK(has(refused(), "chmod 600"));
}

TEST_CASE("A topology that lacks what a backend needs is refused with a remedy") {
  ProcessTopology place;
  place.size = place.local_size = 2;
  place.rendezvous_port = 1234;
  CHECK(has(refusal("threads", place), "make_thread_communicators()"));
  CHECK(has(refusal("pigeons", place), "no backend \"pigeons\"; choose"));
  place.role = "ps";
  CHECK(has(refusal("tcp", place), "takes no part"));
  place.role = "worker";
  place.rendezvous_port = 0;
  CHECK(has(refusal("tcp", place), "set MASTER_ADDR"));
  place.rendezvous_port = 1234;
  place.address = "";
  CHECK(has(refusal("tcp", place), "set TROUPE_ADDRESS"));
  place.local_size = 1;
  CHECK(has(refusal("shared_memory", place), "choose hierarchical or tcp"));
}

} // namespace troupe::collectives
