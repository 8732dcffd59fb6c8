#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "env/classic/classic.hpp"
#include "tests/env/classic/golden_replay.hpp"
#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::env;

namespace {

const std::string kClassicRecordings = in_source("tests/golden/classic");

/// Replays a recording with other options than those it was made with.
ClassicReplay replay_as(const std::string& recording, const std::string& options) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(kClassicRecordings + "/" + recording + ".npz",
                             folder / (recording + ".npz"));
  std::ofstream(folder / "index.json")
      << "{\"tasks\": {\"" << recording << "\": {\"options\": " << options << "}}}";
  return replay_classic(folder.path().string(), recording);
}

} // namespace

TEST_CASE("Recordings of Gymnasium's classic tasks are reproduced") {
  const auto recordings = classic_recordings(kClassicRecordings);
  CHECK(recordings.size() == 18);
  std::set<std::string> tasks;
  for (const std::string& recording : recordings) {
    CAPTURE(recording);
    const ClassicReplay replay = replay_classic(kClassicRecordings, recording);
    for (const std::string& difference : replay.differences)
      FAIL_CHECK(difference);
    CHECK(replay.compared >= 60);
    tasks.insert(recording.substr(0, recording.find('.')));
  }
  const auto names = classic_names();
  CHECK(tasks == std::set<std::string>(names.begin(), names.end()));
}

TEST_CASE("A classic recording that was made with other options is detected") {
  CHECK(replay_as("CartPole-v1", "{}").differences.empty());
  const auto differs = [](const std::string& recording, const std::string& options) {
    CAPTURE(recording);
    CAPTURE(options);
    CHECK_FALSE(replay_as(recording, options).differences.empty());
  };
  differs("CartPole-v1", R"({"sutton_barto_reward": "true"})");
  differs("CartPole-v1", R"({"max_episode_steps": "5"})");
  differs("CartPole-v1.barto", R"({"sutton_barto_reward": "true"})");
  differs("MountainCar-v0", R"({"goal_velocity": "0.06"})");
  differs("MountainCarContinuous-v0", R"({"goal_velocity": "0.06"})");
  differs("Acrobot-v1", R"({"book_or_nips": "nips"})");
  differs("Pendulum-v1", R"({"g": "10.0000001"})");
  differs("FrozenLake-v1", R"({"map_name": "8x8"})");
  differs("FrozenLake-v1", R"({"is_slippery": "false"})");
  differs("FrozenLake-v1", R"({"success_rate": "0.33"})");
  differs("FrozenLake-v1", R"({"reward_schedule": "1,0,1"})");
  differs("Taxi-v4", R"({"is_rainy": "true"})");
  differs("Taxi-v4.rainy", R"({"is_rainy": "true"})");
  differs("Taxi-v4.fickle", R"({})");
  differs("Taxi-v4.fickle", R"({"fickle_passenger": "true"})");
}
