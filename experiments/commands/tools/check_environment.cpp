#include "env/plugin/check_environment.hpp"

#include <cstdio>
#include <memory>
#include <stdexcept>

#include "env/make/make.hpp"
#include "env/plugin/own_environments.hpp"
#include "env/plugin/rollout.hpp"
#include "env/wrappers/normalize.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/plan.hpp"

namespace troupe::experiments::commands {
namespace {

struct CheckEnvironmentOptions {
  std::vector<std::string> tasks;
  std::string plugin;
  std::vector<std::string> overrides;
  std::string statistics;
  int episodes = 20;
  env::CheckOptions check;
  bool json = false;
};

struct Report {
  std::string task;
  std::vector<env::CheckFinding> findings;
  std::string first_error;
};

/// Checks the keys of an environment block as those of an experiment are checked.
env::EnvironmentConfig config_of(const std::string& task, const CheckEnvironmentOptions& options) {
  std::vector<std::string> sets = {"environment.task=" + task};
  if (!options.plugin.empty()) {
    sets.push_back("environment.plugin=" + options.plugin);
  }
  for (const std::string& assignment : options.overrides) {
    if (!assignment.starts_with("environment.")) {
      throw std::invalid_argument("--set " + assignment
                                  + ": only keys of the environment are read here; they begin with "
                                    "environment.");
    }
    sets.push_back(assignment);
  }
  try {
    return plan_environment(parse_experiment("name: \"check\"", "check", sets).environment());
  } catch (const ConfigError& mistake) { // the name was given without --set
    auto complaints = mistake.complaints();
    const std::string own = "--set " + sets.front();
    for (std::string& complaint : complaints) {
      if (complaint.starts_with(own)) {
        complaint.replace(0, own.size(), task);
      }
    }
    throw ConfigError(complaints);
  }
}

Report check_one(const std::string& task, const CheckEnvironmentOptions& options) {
  const env::EnvironmentConfig config = config_of(task, options);
  Report report{.task = task, .findings = {}, .first_error = {}};
  if (options.overrides.empty()) { // the environment itself
    report.findings = env::check_environment([&] { return env::make_bare(config); }, options.check);
  }
  const bool sound = report.findings.empty() || !report.findings.front().error;
  if (sound) { // the wrapped environment that agents see
    for (auto& finding :
         env::check_environment([&] { return env::make_environment(config); }, options.check)) {
      finding.rule = "wrapped: " + finding.rule;
      report.findings.push_back(std::move(finding));
    }
  }
  for (const auto& finding : report.findings) {
    if (finding.error && report.first_error.empty()) {
      report.first_error = task + ": " + finding.rule + ": " + finding.text;
    }
  }
  return report;
}

void print(const Report& report, bool json) {
  if (json) {
    Json findings = Json::array();
    for (const auto& finding : report.findings) {
      findings.push_back({{"level", finding.error ? "error" : "warning"},
                          {"rule", finding.rule},
                          {"text", finding.text}});
    }
    print_json({{"task", report.task},
                {"passed", report.first_error.empty()},
                {"findings", std::move(findings)}});
  } else {
    std::printf("%-32s %s\n", report.task.c_str(),
                report.first_error.empty() ? "passed" : "FAILED");
    for (const auto& finding : report.findings) {
      std::printf("    %s: %s: %s\n", finding.error ? "error" : "warning", finding.rule.c_str(),
                  finding.text.c_str());
    }
  }
  std::fflush(stdout);
}

/// Computes the mean and variance of observations under uniformly random actions, for
/// normalization.mode "frozen".
void collect_statistics(const std::string& task, const CheckEnvironmentOptions& options) {
  env::EnvironmentConfig config = config_of(task, options);
  config.normalization = {};
  config.frame_stack = 1; // frames are normalised before they are stacked
  env::Normalize environment(env::make_environment(config), {});
  for (int i = 0; i < options.episodes; ++i) {
    env::play(environment, options.check.seed + static_cast<std::uint64_t>(i),
              options.check.episode_steps);
  }
  env::write_statistics(options.statistics, environment.statistics());
  std::fprintf(options.json ? stderr : stdout, "%lld observations of %d episodes in %s\n",
               static_cast<long long>(environment.statistics().count), options.episodes,
               options.statistics.c_str());
}

void check_one_environment(CheckEnvironmentOptions options) {
  if (!options.statistics.empty() && options.tasks.size() != 1) {
    throw std::invalid_argument("--statistics " + options.statistics
                                + ": name the one task to compute them for");
  }
  if (options.tasks.empty()) {
    options.tasks = options.plugin.empty() ? env::environment_names()
                                           : env::plugin_environments(options.plugin);
  }
  std::string first_error;
  std::size_t failed = 0;
  for (const std::string& task : options.tasks) {
    const Report report = check_one(task, options);
    print(report, options.json);
    if (!report.first_error.empty() && failed++ == 0) {
      first_error = report.first_error;
    }
  }
  if (!options.json) {
    std::printf("%zu of %zu environments passed\n", options.tasks.size() - failed,
                options.tasks.size());
  }
  if (!first_error.empty()) {
    throw std::runtime_error(first_error);
  }
  if (!options.statistics.empty()) {
    collect_statistics(options.tasks.front(), options);
  }
}

} // namespace

void add_check_environment(CLI::App& check_command) {
  CLI::App* command = check_command.add_subcommand(
      "environment", "Runs environments and reports violations of the rules for environments");
  command->footer("Example: troupe check environment my_task --plugin libmine.so --json\n"
                  "Exit codes: 0 no errors (warnings may be intended), 1 an error, 2 a mistake in "
                  "flags, names or the plug-in.");
  auto options = std::make_shared<CheckEnvironmentOptions>();
  command->add_option(
      "TASKS", options->tasks,
      "names, as for environment.task; default: all tasks of the plug-in, or of this program");
  command->add_option("--plugin", options->plugin, "shared library with the tasks");
  command
      ->add_option(
          "--set", options->overrides,
          "environment.<key>=value, may be repeated; the wrapped environment is then checked")
      ->allow_extra_args(false);
  command->add_option("--statistics", options->statistics,
                      "file for the observations' mean and variance under random actions, for "
                      "environment.normalization.file");
  command->add_option("--episodes", options->episodes, "number of episodes for the statistics")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--seed", options->check.seed, "seed of the first episode")
      ->capture_default_str();
  command->add_option("--steps", options->check.steps, "length of the rollouts that are compared")
      ->check(CLI::Range(4, 100'000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "one JSON object per environment and line");
  command->callback([options] { check_one_environment(*options); });
}

} // namespace troupe::experiments::commands
