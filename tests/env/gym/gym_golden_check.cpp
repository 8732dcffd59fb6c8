// gym_golden_check <folder> replays a folder of recordings of Gymnasium and exits with 1 if any
// differs. gym_golden_check --options prints every task, option and default, separated by tabs.
#include <cstdio>
#include <filesystem>
#include <string>

#include "env/golden/gym_golden.hpp"
#include "env/gym/gym.hpp"

using namespace troupe::env;

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gym_golden_check <folder>\n");
    return 2;
  }
  if (std::string(argv[1]) == "--options") {
    for (const std::string& task : gym_names())
      for (const GymOption& option : gym_options(task))
        std::printf("%s\t%s\t%s\n", task.c_str(), option.name.c_str(),
                    option.default_value.c_str());
    return 0;
  }
  int failed = 0;
  int checked = 0;
  for (const auto& file : std::filesystem::directory_iterator(argv[1])) {
    if (file.path().extension() != ".npz")
      continue;
    const GoldenReport report = check_gym_golden(argv[1], file.path().stem().string());
    ++checked;
    failed += report.passed() ? 0 : 1;
    std::printf("%-34s %s  %d steps, %d probes: observations %.1e  rewards %.1e  probes %.1e\n",
                report.task.c_str(), report.passed() ? "passed" : "FAILED", report.steps,
                report.probes, report.observation_error, report.reward_error, report.probe_error);
    for (const std::string& failure : report.failures)
      std::printf("    %s\n", failure.c_str());
  }
  std::printf("%d of %d recordings passed\n", checked - failed, checked);
  return failed == 0 && checked > 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
