#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "env/minatar/minatar.hpp"
#include "tests/env/minatar/golden_replay.hpp"
#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::env;

namespace {

const std::string kMinAtarRecordings = in_source("tests/golden/minatar");

/// Replays a recording with other options than those it was made with, or as another task.
MinAtarReplay replay_as(const std::string& recording, const std::string& options,
                        const std::string& task = "") {
  const TemporaryFolder folder;
  const std::string name = task.empty() ? recording : task;
  std::filesystem::copy_file(kMinAtarRecordings + "/" + recording + ".npz",
                             folder / (name + ".npz"));
  std::ofstream(folder / "index.json")
      << "{\"tasks\": {\"" << name << "\": {\"options\": " << options << "}}}";
  return replay_minatar(folder.path().string(), name);
}

} // namespace

TEST_CASE("Recordings of MinAtar's games are reproduced") {
  const auto recordings = minatar_recordings(kMinAtarRecordings);
  CHECK(recordings.size() == 25);
  std::set<std::string> tasks;
  for (const std::string& recording : recordings) {
    CAPTURE(recording);
    const MinAtarReplay replay = replay_minatar(kMinAtarRecordings, recording);
    for (std::size_t i = 0; i < replay.differences.size() && i < 5; ++i)
      FAIL_CHECK(replay.differences[i]);
    CHECK(replay.compared >= 250);
    CHECK(replay.episodes >= 1);
    if (recording.ends_with("v0") || recording.ends_with("v1"))
      CHECK(std::ranges::count(replay.actions, 0) == 0); // every action was applied
    tasks.insert("MinAtar/" + recording.substr(0, recording.find('.')));
  }
  const auto names = minatar_names();
  CHECK(tasks == std::set<std::string>(names.begin(), names.end()));
}

TEST_CASE("A MinAtar recording that was made with other options is detected") {
  CHECK(replay_as("Asterix-v0.lasting", "{}").differences.empty());
  const auto differs = [](const std::string& recording, const std::string& options) {
    CAPTURE(recording);
    CAPTURE(options);
    CHECK_FALSE(replay_as(recording, options).differences.empty());
  };
  for (const std::string game : {"Asterix", "Seaquest", "SpaceInvaders"})
    differs(game + "-v0.lasting", R"({"difficulty_ramping": "false"})");
  differs("Asterix-v0.level", R"({"sticky_action_prob": "0"})");
  for (const std::string game : {"Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders"}) {
    differs(game + "-v0.lasting", R"({"sticky_action_prob": "0"})");
    differs(game + "-v0.short", R"({"sticky_action_prob": "0.4"})"); // no time limit
    differs(game + "-v0.short", R"({"max_episode_steps": "20"})");
  }
  CHECK_FALSE(replay_as("Breakout-v1", "{}", "Breakout-v0").differences.empty());
  CHECK_FALSE(replay_as("Breakout-v0", "{}", "Seaquest-v0").differences.empty());
}

TEST_CASE("A MinAtar recording with damaged arrays is refused") {
  const TemporaryFolder folder;
  std::ofstream(folder / "index.json") << R"({"tasks": {"Breakout-v0": {"options": {}}}})";
  CHECK_THROWS_AS(replay_minatar(folder.path().string(), "Breakout-v0"), std::runtime_error);
  std::filesystem::copy_file(in_source("tests/golden/classic/CartPole-v1.npz"),
                             folder / "Breakout-v0.npz");
  CHECK_THROWS_WITH_AS(replay_minatar(folder.path().string(), "Breakout-v0"),
                       doctest::Contains("has no array 'board'"), std::runtime_error);
}
