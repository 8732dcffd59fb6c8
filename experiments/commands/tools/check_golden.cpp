#include <cstdio>
#include <memory>
#include <stdexcept>

#include "env/golden/golden.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"

namespace troupe::experiments::commands {
namespace {

struct CheckGoldenOptions {
  std::string folder;
  std::string models;
  std::vector<std::string> tasks;
  bool frames = false;
  bool json = false;
};

void print_report(const env::GoldenReport& report, bool json) {
  if (json) {
    print_json({{"task", report.task},
                {"passed", report.passed()},
                {"steps", report.steps},
                {"probes", report.probes},
                {"frames", report.frames},
                {"observation_error", report.observation_error},
                {"reward_error", report.reward_error},
                {"probe_error", report.probe_error},
                {"frame_error", report.frame_error},
                {"failures", report.failures}});
    return;
  }
  std::printf("%-24s %s  observations %.1e  rewards %.1e  probes %.1e", report.task.c_str(),
              report.passed() ? "passed" : "FAILED", report.observation_error, report.reward_error,
              report.probe_error);
  if (report.frames > 0) {
    std::printf("  frames %.2f grey levels", report.frame_error);
  }
  std::printf("\n");
  for (const std::string& failure : report.failures) {
    std::printf("    %s\n", failure.c_str());
  }
}

void check_one_golden(const CheckGoldenOptions& options) {
  const env::GoldenIndex index = env::read_golden_index(options.folder);
  const auto& tasks = options.tasks.empty() ? index.tasks : options.tasks;
  std::string first_failure;
  std::size_t failed = 0;
  for (const std::string& task : tasks) {
    const auto report =
        env::check_golden(options.folder, task, options.models,
                          options.frames ? std::optional(env::GlBackend::automatic) : std::nullopt);
    print_report(report, options.json);
    std::fflush(stdout);
    if (!report.passed()) {
      first_failure = failed++ == 0 ? task + ": " + report.failures.front() : first_failure;
    }
  }
  if (!options.json) {
    std::printf("%zu of %zu tasks passed; %zu in the recordings are not built\n",
                tasks.size() - failed, tasks.size(), index.not_built.size());
  }
  std::fflush(stdout);
  if (failed > 0) {
    throw std::runtime_error(first_failure);
  }
}

} // namespace

void add_check(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "check", "Tests environments and renderers against their rules and recordings");
  command->footer("Example: troupe check environment pendulum_swingup");
  command->require_subcommand(1);
  add_check_environment(*command);
  add_check_likeness(*command);
  CLI::App* golden = command->add_subcommand(
      "golden", "Replays recorded trajectories of dm_control; prints the largest errors per task");
  golden->footer("Example: troupe check golden tests/golden/control_suite --frames");
  auto options = std::make_shared<CheckGoldenOptions>();
  golden->add_option("FOLDER", options->folder, "folder with index.json and <task>.npz")
      ->required();
  golden->add_option("--task", options->tasks, "only this task; may be repeated")
      ->allow_extra_args(false);
  golden->add_option("--models", options->models, "folder of the control suite's XML files");
  golden->add_flag("--frames", options->frames, "compares pictures too (needs OpenGL)");
  golden->add_flag("--json", options->json, "one JSON object per line");
  golden->callback([options] { check_one_golden(*options); });
}

} // namespace troupe::experiments::commands
