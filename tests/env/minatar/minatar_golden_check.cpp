// minatar_golden_check <folder> replays a folder of recordings of MinAtar and exits with 1 if any
// differs. minatar_golden_check --tasks prints every task, its number of actions and of channels,
// and its options with their defaults, separated by tabs.
#include <cstdio>
#include <exception>
#include <string>

#include "env/minatar/minatar.hpp"
#include "tests/env/minatar/golden_replay.hpp"

using namespace troupe::env;

namespace {

void print_tasks() {
  for (const std::string& task : minatar_names()) {
    const auto environment = make_minatar(task);
    const EnvironmentSpec& spec = environment->spec();
    std::printf("%s\t%lld\t%lld", task.c_str(), static_cast<long long>(spec.action.choices_of(0)),
                static_cast<long long>(spec.observations[0].shape[0]));
    for (const GymOption& option : minatar_options(task))
      std::printf("\t%s\t%s", option.name.c_str(), option.default_value.c_str());
    std::printf("\n");
  }
}

} // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: minatar_golden_check <folder>\n");
    return 2;
  }
  if (std::string(argv[1]) == "--tasks") {
    print_tasks();
    return 0;
  }
  int failed = 0;
  const auto recordings = minatar_recordings(argv[1]);
  for (const std::string& recording : recordings) {
    const MinAtarReplay replay = replay_minatar(argv[1], recording);
    const bool passed = replay.differences.empty() && replay.compared > 0;
    failed += passed ? 0 : 1;
    std::printf("%-26s %s  %d compared, %d episodes, rewards %g\n", recording.c_str(),
                passed ? "passed" : "FAILED", replay.compared, replay.episodes, replay.rewards);
    for (std::size_t i = 0; i < replay.differences.size() && i < 10; ++i)
      std::printf("    %s\n", replay.differences[i].c_str());
  }
  return failed == 0 && !recordings.empty() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
