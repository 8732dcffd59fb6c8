#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "env/golden/gym_golden.hpp"
#include "env/gym/gym.hpp"
#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::env;

namespace {

const std::filesystem::path kRecordings = in_source("tests/golden/gym");

/// Checks a folder that holds the recording `file` under another name and an index with these
/// options.
GoldenReport check_as(const std::string& file, const std::string& name,
                      const std::string& options) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(kRecordings / (file + ".npz"), folder / (name + ".npz"));
  std::ofstream(folder / "index.json")
      << "{\"tasks\": {\"" << name << "\": {\"options\": " << options << "}}}";
  return check_gym_golden(folder.path().string(), name);
}

} // namespace

TEST_CASE("Recordings of the real Gymnasium are reproduced") {
  int recordings = 0;
  std::vector<std::string> tasks;
  for (const auto& file : std::filesystem::directory_iterator(kRecordings)) {
    if (file.path().extension() != ".npz")
      continue;
    const std::string name = file.path().stem().string();
    CAPTURE(name);
    REQUIRE(is_gym_recording(name));
    const GoldenReport report = check_gym_golden(kRecordings.string(), name);
    for (const std::string& failure : report.failures)
      FAIL_CHECK(failure);
    CHECK(report.steps >= 3);
    CHECK(report.probes >= 1);
    CHECK(report.observation_error <= kGoldenTolerance);
    CHECK(report.reward_error <= kGoldenTolerance);
    CHECK(report.probe_error <= kGoldenProbeTolerance);
    tasks.push_back(name.substr(0, name.find('.')));
    ++recordings;
  }
  CHECK(recordings == 15);
  for (const std::string& task : gym_names())
    CHECK_MESSAGE(std::count(tasks.begin(), tasks.end(), task) >= 1, task);
}

TEST_CASE("A recording with another weight, frame skip, time limit or task is detected") {
  CHECK(check_as("HalfCheetah-v5", "HalfCheetah-v5", "{}").passed());
  const GoldenReport weight =
      check_as("HalfCheetah-v5", "HalfCheetah-v5", R"({"ctrl_cost_weight": "0.11"})");
  CHECK_FALSE(weight.passed());
  CHECK(weight.observation_error == 0);
  CHECK(weight.reward_error > 1e-3);
  const GoldenReport skip = check_as("HalfCheetah-v5", "HalfCheetah-v5", R"({"frame_skip": "4"})");
  CHECK(skip.observation_error > 1e-6);
  const GoldenReport limit =
      check_as("HalfCheetah-v5", "HalfCheetah-v5", R"({"max_episode_steps": "10"})");
  REQUIRE(limit.failures.size() >= 1);
  CHECK(limit.failures[0].find("step 9: ours does not terminate but is truncated") == 0);
  CHECK_THROWS_WITH_AS(check_as("Ant-v5", "HalfCheetah-v5", "{}"),
                       doctest::Contains("HalfCheetah-v5.npz"), std::runtime_error);
}

TEST_CASE("The error about a damaged index or folder names the cause") {
  CHECK_THROWS_WITH_AS(check_gym_golden("/nowhere", "Ant-v5"),
                       doctest::Contains("/nowhere/index.json"), std::runtime_error);
  CHECK_THROWS_WITH_AS(check_as("Ant-v5", "Ant-v5", R"({"frame_skip": 5})"),
                       doctest::Contains("does not describe the recording 'Ant-v5'"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(check_as("Ant-v5", "Ant-v5", R"({"frame_skips": "5"})"),
                       doctest::Contains("'frame_skip'"), std::invalid_argument);
  CHECK_FALSE(is_gym_recording("cheetah_run"));
  CHECK(is_gym_recording("Ant-v5.weights"));
}
