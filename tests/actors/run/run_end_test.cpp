// How runs end: stopped while they start, by a goal, with an evaluation under way, and for nodes.
#include "tests/doctest_torch.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <stdexcept>
#include <vector>

#include "actors/run/run.hpp"
#include "actors/supervision/node.hpp"
#include "tests/actors/small_run.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

namespace troupe::actors {
namespace {

TEST_CASE("A run that is stopped while its actors start was interrupted, and did not fail") {
  const TemporaryFolder folder;
  const RunResult half = play(small(2400), folder.path());
  REQUIRE(half.error == "");
  const std::atomic<bool> stop = true;
  for (const auto& from : {std::filesystem::path(), half.checkpoint}) {
    const RunResult result = run(small(4000), folder.path(), from, {}, {}, stop);
    CHECK(result.error == "");
    CHECK(result.interrupted);
    CHECK(result.checkpoint == from);
    CHECK(result.evaluation.returns.empty());
  }
}

TEST_CASE("A run ends at a negative return that it was to reach") {
  auto config = small(12'000);
  config.evaluation.period = 2000;
  config.evaluation.episodes = 1;
  config.stop.evaluation_return = -1; // the task's rewards are never negative
  const TemporaryFolder folder;
  const RunResult result = play(config, folder.path());
  REQUIRE(result.error == "");
  CHECK(result.evaluation.final);
  CHECK(result.progress.environment_steps < 12'000);
}

TEST_CASE("An evaluation that outlasts training is recorded with the steps at which it began") {
  auto config = small(20'000);
  config.deterministic = false;
  config.evaluation.period = 4000;
  config.evaluation.episodes = 100;
  std::set<std::int64_t> begun; // an evaluation begins with the distributions of the same steps
  std::vector<Evaluated> evaluations;
  const RunCallbacks callbacks{
      .progress = {},
      .evaluated = [&](const Evaluated& one) { evaluations.push_back(one); },
      .log = {},
      .episode = {},
      .distributions = [&](const Distributions& made) { begun.insert(made.environment_steps); }};
  const TemporaryFolder folder;
  const std::atomic<bool> stop = false;
  const RunResult result = run(config, folder.path(), {}, {}, callbacks, stop);
  REQUIRE(result.error == "");
  REQUIRE(evaluations.size() == begun.size() + 1);
  CHECK(evaluations.size() >= 2);
  CHECK(evaluations.back().final);
  evaluations.pop_back();
  for (const Evaluated& one : evaluations) {
    CHECK_FALSE(one.final);
    CHECK(begun.contains(one.environment_steps));
  }
}

TEST_CASE("Nodes of a failed run wait for its next head, if there will be one") {
  for (const bool comes_back : {true, false}) {
    CAPTURE(comes_back);
    const TemporaryFolder folder;
    std::ofstream(folder / "config.textproto") << "not read here";
    auto config = small(2400);
    config.actors.restarts = 0;
    const NodeResources host{.name = "n", .address = "127.0.0.1", .numa = {{.cores = {0}}}};
    Placer placer({{"replay", {}},
                   {"parameter_server", {}},
                   {"learner", {}},
                   {"environment", {}},
                   {"evaluator", {}}},
                  true);
    placer.add_node(host);
    std::atomic<bool> stop_node = false;
    std::future<int> node;
    Deployment deployment;
    deployment.nodes = DeploymentNodes{.placer = placer, .head_comes_back = comes_back};
    deployment.listening = [&](std::uint16_t port) {
      node = std::async(std::launch::async, [&, port] {
        return run_node({.head_port = port,
                         .resources = host,
                         .join_seconds = 20,
                         .start_process = [](const ProcessOrder&) -> int {
                           throw std::runtime_error("it has no program");
                         },
                         .log = [](const std::string&) {}},
                        stop_node);
      });
    };
    const std::atomic<bool> stop = false;
    const RunResult result = run(config, folder.path(), {}, deployment, {}, stop);
    CHECK(has(result.error, "it has no program"));
    REQUIRE(node.valid());
    stop_node = comes_back;
    if (comes_back)
      CHECK_THROWS_AS(node.get(), std::runtime_error);
    else
      CHECK(node.get() == 0);
  }
}

} // namespace
} // namespace troupe::actors
