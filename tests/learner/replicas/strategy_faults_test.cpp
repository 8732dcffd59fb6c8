// Real processes are killed with SIGKILL under each strategy, and the others continue. --success
// prints the times.
#include <memory>

#include "tests/doctest_torch.hpp"

#include "tests/learner/replicas/strategy_process.hpp"
#include "tests/reserved_port.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::learner {
namespace {

using Processes = std::vector<std::unique_ptr<StrategyProcess>>;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begun) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
}

/// The servers and workers of one run.
struct Run {
  Run(std::string name, int size, int shards, int processes_per_worker = 1)
      : strategy(std::move(name)), count(std::to_string(size)) {
    for (int i = 0; i < shards; ++i) {
      start_server(i, "tcp://127.0.0.1:*");
      const std::string endpoint = servers.back()->last();
      endpoints.push_back(endpoint);
      list += (i > 0 ? "," : "") + endpoint;
    }
    int port = 0;
    for (int i = 0; i < size * processes_per_worker; ++i) {
      if (processes_per_worker > 1 && i % processes_per_worker == 0)
        port = reserved_port();
      ports.push_back(port);
      start_worker(i);
    }
    for (const auto& worker : workers)
      REQUIRE(worker->wait_for(10));
  }
  void start_server(int i, const std::string& endpoint) {
    auto made = std::make_unique<StrategyProcess>(
        std::vector<std::string>{"server", strategy, count, endpoint,
                                 (folder / (std::to_string(i) + ".safetensors")).string()});
    REQUIRE(made->wait_for(1));
    REQUIRE(made->last().starts_with("tcp://"));
    if (static_cast<std::size_t>(i) < servers.size())
      servers[static_cast<std::size_t>(i)] = std::move(made);
    else
      servers.push_back(std::move(made));
  }
  void start_worker(int i) {
    const auto at = static_cast<std::size_t>(i);
    auto made = std::make_unique<StrategyProcess>(std::vector<std::string>{
        "worker", strategy, count, list, std::to_string(i), std::to_string(ports[at])});
    if (at < workers.size())
      workers[at] = std::move(made);
    else
      workers.push_back(std::move(made));
  }
  /// Returns the milliseconds from `since` until all of these workers make steps again. Then each
  /// makes `steps` more steps.
  double pause(const std::vector<int>& ids, Clock::time_point since, std::size_t steps) {
    std::vector<std::size_t> before;
    for (const int id : ids)
      before.push_back(worker(id).lines());
    for (std::size_t i = 0; i < ids.size(); ++i) // 2: some lines may already have been on their way
      REQUIRE(worker(ids[i]).wait_for(before[i] + 3));
    const double longest = milliseconds_since(since);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      REQUIRE(worker(ids[i]).wait_for(before[i] + steps));
      CHECK(worker(ids[i]).last().starts_with("step "));
    }
    return longest;
  }
  StrategyProcess& worker(int id) { return *workers[static_cast<std::size_t>(id)]; }

  std::string strategy;
  std::string count;
  TemporaryFolder folder;
  Processes servers;
  std::vector<std::string> endpoints;
  std::string list;
  std::vector<int> ports;
  Processes workers;
};

} // namespace

TEST_CASE("After kill -9 of a worker, the others continue, and a new process takes its place") {
  for (const std::string strategy : {"asynchronous", "lead", "central", "backup"}) {
    CAPTURE(strategy);
    Run run(strategy, 3, 2);
    run.workers[2]->signal(SIGKILL);
    const auto killed = Clock::now();
    const double pause = run.pause({0, 1}, killed, 200);
    MESSAGE(strategy, ": worker killed, the others' next steps after ", pause, " ms");
    CHECK(pause < 15'000);
    run.start_worker(2);
    CHECK(run.workers[2]->wait_for(20));
  }
}

TEST_CASE("A frozen worker is not waited for, and it continues after SIGCONT") {
  Run run("central", 3, 1);
  run.workers[1]->signal(SIGSTOP);
  const auto stopped = Clock::now();
  const double pause = run.pause({0, 2}, stopped, 200);
  MESSAGE("central: worker frozen, the others' next steps after ", pause, " ms");
  CHECK(pause < 15'000);
  run.workers[1]->signal(SIGCONT);
  CHECK(run.workers[1]->wait_for(run.workers[1]->lines() + 20));
}

TEST_CASE("After kill -9 of a server shard and its restart, the workers continue") {
  for (const std::string strategy : {"asynchronous", "central", "backup"}) {
    CAPTURE(strategy);
    Run run(strategy, 2, 2);
    run.servers[1]->signal(SIGKILL);
    const auto killed = Clock::now();
    run.start_server(1, run.endpoints[1]);
    const double started = milliseconds_since(killed);
    const double pause = run.pause({0, 1}, killed, 200);
    MESSAGE(strategy, ": shard killed, serving again after ", started,
            " ms, the workers' next steps after ", pause, " ms");
    CHECK(pause < 15'000);
  }
}

TEST_CASE("After kill -9 of a worker in a sync group, its group fails and names it, and the other "
          "groups continue") {
  Run run("groups", 2, 1, 2); // processes 0 and 1, 2 and 3
  run.workers[3]->signal(SIGKILL);
  const auto killed = Clock::now();
  REQUIRE(run.workers[2]->wait_end());
  const double detected = milliseconds_since(killed);
  CAPTURE(run.workers[2]->last());
  CHECK(run.workers[2]->last().starts_with("failed "));
  CHECK(run.workers[2]->last().find("rank 1 died or left") != std::string::npos);
  const double pause = run.pause({0, 1}, killed, 200);
  MESSAGE("groups: rank killed, its group ended after ", detected,
          " ms, the other's next steps after ", pause, " ms");
  CHECK(detected < 15'000);
}

TEST_CASE("After kill -9 of a worker in local SGD, the other worker fails and names it") {
  Run run("local", 1, 0, 2);
  run.workers[1]->signal(SIGKILL);
  const auto killed = Clock::now();
  REQUIRE(run.workers[0]->wait_end());
  MESSAGE("local SGD: rank killed, named after ", milliseconds_since(killed),
          " ms: ", run.workers[0]->last());
  CHECK(run.workers[0]->last().starts_with("failed "));
  CHECK(run.workers[0]->last().find("rank 1 died or left") != std::string::npos);
}

} // namespace troupe::learner
