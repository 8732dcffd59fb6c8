#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::experiments {

/// A folder with an experiment file for a run of a few seconds, with small networks and few
/// updates.
struct SmallRun {
  TemporaryFolder folder;

  SmallRun() {
    std::ofstream(folder.path() / "small.textproto") << R"(# a small run
environment { task: "pendulum_swingup" }
replay { minimum_items: 200 samples_per_insert: 4 }
d4pg { policy_layers: [16] critic_layers: [16] batch_size: 16 }
actors { random_steps: 200 }
evaluation { period: 1000 episodes: 1 final_episodes: 2 video: false }
stop { environment_steps: 2500 }
)";
  }

  std::filesystem::path only_run() const {
    std::filesystem::path found;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "runs/small")) {
      CHECK(found.empty());
      found = entry.path();
    }
    return found;
  }
};

inline std::vector<std::string> train_small(const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {in_build("troupe"), "train", "small.textproto"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

} // namespace troupe::experiments
