// classic_golden_check <folder> replays a folder of recordings of Gymnasium and exits with 1 if any
// differs. classic_golden_check --options prints every task, option and default, separated by tabs.
#include <cstdio>
#include <exception>
#include <string>

#include "env/classic/classic.hpp"
#include "tests/env/classic/golden_replay.hpp"

using namespace troupe::env;

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: classic_golden_check <folder>\n");
    return 2;
  }
  if (std::string(argv[1]) == "--options") {
    for (const std::string& task : classic_names())
      for (const GymOption& option : classic_options(task))
        std::printf("%s\t%s\t%s\n", task.c_str(), option.name.c_str(),
                    option.default_value.c_str());
    return 0;
  }
  int failed = 0;
  const auto recordings = classic_recordings(argv[1]);
  for (const std::string& recording : recordings) {
    const ClassicReplay replay = replay_classic(argv[1], recording);
    const bool passed = replay.differences.empty() && replay.compared > 0;
    failed += passed ? 0 : 1;
    std::printf("%-30s %s  %d compared: states %.1e  rewards %.1e\n", recording.c_str(),
                passed ? "passed" : "FAILED", replay.compared, replay.state_error,
                replay.reward_error);
    for (const std::string& difference : replay.differences)
      std::printf("    %s\n", difference.c_str());
  }
  return failed == 0 && !recordings.empty() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
