#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "env/golden/golden.hpp"
#include "tests/env/golden/recordings.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::env;

namespace {

void check_all(const std::string& folder) {
  const GoldenIndex index = read_golden_index(folder);
  CHECK(index.tasks.size() == 51); // all tasks of dm_control's suite
  CHECK(index.not_built.empty());
  for (const std::string& task : index.tasks) {
    const GoldenReport report = check_golden(folder, task);
    CAPTURE(task);
    for (const std::string& failure : report.failures)
      FAIL_CHECK(failure);
    CHECK(report.steps >= 16);
    CHECK(report.probes >= 16);
    CHECK(report.frames == 0);
    CHECK(report.observation_error <= kGoldenTolerance);
    CHECK(report.reward_error <= kGoldenTolerance);
    CHECK(report.discount_error == 0);
    CHECK(report.other_step_types == 0);
    CHECK(report.probe_error <= kGoldenProbeTolerance);
  }
}

} // namespace

TEST_CASE("Trajectories and probes of the real dm_control are reproduced") {
  check_all(kRecordings);
}

TEST_CASE("Longer trajectories of the real dm_control are reproduced") {
  if (const std::string folder = longer_recordings(); !folder.empty())
    check_all(folder);
}

TEST_CASE("A recording of another task is detected") {
  const TemporaryFolder folder;
  const std::filesystem::path golden = kRecordings;
  const auto replace = std::filesystem::copy_options::overwrite_existing;
  // The same model and shapes, but another reward.
  std::filesystem::copy_file(golden / "walker_run.npz", folder / "walker_walk.npz", replace);
  const GoldenReport report = check_golden(folder.path().string(), "walker_walk");
  CHECK_FALSE(report.passed());
  CHECK(report.observation_error <= kGoldenTolerance);
  CHECK(report.reward_error > 1e-4);
  // Other shapes.
  std::filesystem::copy_file(golden / "cheetah_run.npz", folder / "walker_walk.npz", replace);
  CHECK_THROWS_WITH_AS(check_golden(folder.path().string(), "walker_walk"),
                       doctest::Contains("walker_walk.npz"), std::runtime_error);
}

TEST_CASE("The error about missing or invalid recordings names the file") {
  CHECK_THROWS_WITH_AS(read_golden_index("/nowhere"), doctest::Contains("/nowhere/index.json"),
                       std::runtime_error);
  const TemporaryFolder folder;
  std::ofstream(folder / "index.json") << "{\"tasks\": [";
  CHECK_THROWS_WITH_AS(read_golden_index(folder.path().string()), doctest::Contains("not an index"),
                       std::runtime_error);
  std::ofstream(folder / "index.json") << "{\"tasks\": {\"cheetah_run\": {}, \"dog_sing\": {}}}";
  const GoldenIndex index = read_golden_index(folder.path().string());
  CHECK(index.tasks == std::vector<std::string>{"cheetah_run"});
  CHECK(index.not_built == std::vector<std::string>{"dog_sing"});
  CHECK_THROWS_WITH_AS(check_golden(folder.path().string(), "cheetah_run"),
                       doctest::Contains("cheetah_run.npz"), std::runtime_error);
}
