// How runs end: stopped while they start, by a goal, and with an evaluation under way.
#include "tests/doctest_torch.hpp"

#include <atomic>
#include <filesystem>
#include <set>
#include <vector>

#include "actors/run/run.hpp"
#include "tests/actors/small_run.hpp"
#include "tests/temporary_folder.hpp"

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

} // namespace
} // namespace troupe::actors
