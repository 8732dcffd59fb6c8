#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "env/golden.hpp"

using namespace troupe::env;

namespace {

bool recordings_present() {
  if (std::filesystem::exists(TROUPE_GOLDEN_DIR "/index.json"))
    return true;
  MESSAGE("skipped: no recordings of dm_control in " TROUPE_GOLDEN_DIR);
  return false;
}

} // namespace

TEST_CASE("trajectories and probes of the real dm_control come out the same") {
  if (!recordings_present())
    return;
  const GoldenIndex index = read_golden_index(TROUPE_GOLDEN_DIR);
  CHECK(index.tasks.size() == 51); // all of dm_control's suite
  CHECK(index.not_built.empty());
  for (const std::string& task : index.tasks) {
    const GoldenReport report = check_golden(TROUPE_GOLDEN_DIR, task);
    CAPTURE(task);
    for (const std::string& failure : report.failures)
      FAIL_CHECK(failure);
    CHECK(report.steps == 50);
    CHECK(report.probes >= 64);
    CHECK(report.frames == 0);
    CHECK(report.observation_error <= kGoldenTolerance);
    CHECK(report.reward_error <= kGoldenTolerance);
    CHECK(report.discount_error == 0);
    CHECK(report.other_step_types == 0);
    CHECK(report.probe_error <= kGoldenProbeTolerance);
  }
}

TEST_CASE("a recording of another task is noticed") {
  if (!recordings_present())
    return;
  const auto folder = std::filesystem::path(TROUPE_BINARY_DIR) / "golden_test";
  std::filesystem::create_directories(folder);
  const std::filesystem::path golden = TROUPE_GOLDEN_DIR;
  const auto replace = std::filesystem::copy_options::overwrite_existing;
  // The same model and shapes, another reward.
  std::filesystem::copy_file(golden / "walker_run.npz", folder / "walker_walk.npz", replace);
  const GoldenReport report = check_golden(folder.string(), "walker_walk");
  CHECK_FALSE(report.passed());
  CHECK(report.observation_error <= kGoldenTolerance);
  CHECK(report.reward_error > 1e-3);
  // Other shapes.
  std::filesystem::copy_file(golden / "cheetah_run.npz", folder / "walker_walk.npz", replace);
  CHECK_THROWS_WITH_AS(check_golden(folder.string(), "walker_walk"),
                       doctest::Contains("walker_walk.npz"), std::runtime_error);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a folder without recordings is said so") {
  CHECK_THROWS_WITH_AS(read_golden_index("/nowhere"), doctest::Contains("/nowhere/index.json"),
                       std::runtime_error);
  const auto folder = std::filesystem::path(TROUPE_BINARY_DIR) / "golden_index_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "index.json") << "{\"tasks\": [";
  CHECK_THROWS_WITH_AS(read_golden_index(folder.string()), doctest::Contains("not an index"),
                       std::runtime_error);
  std::ofstream(folder / "index.json") << "{\"tasks\": {\"cheetah_run\": {}, \"dog_sing\": {}}}";
  const GoldenIndex index = read_golden_index(folder.string());
  CHECK(index.tasks == std::vector<std::string>{"cheetah_run"});
  CHECK(index.not_built == std::vector<std::string>{"dog_sing"});
  CHECK_THROWS_WITH_AS(check_golden(folder.string(), "cheetah_run"),
                       doctest::Contains("cheetah_run.npz"), std::runtime_error);
  std::filesystem::remove_all(folder);
}
