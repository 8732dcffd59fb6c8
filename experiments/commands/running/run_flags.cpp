#include "experiments/commands/running/run_flags.hpp"

#include "experiments/commands/running/stored_run.hpp"
#include "experiments/run_folder/head_file.hpp"

namespace troupe::experiments::commands {

void add_stored_run(CLI::App& command, StoredRunChoice& choice, const std::string& help) {
  command.add_option("RUN", choice.run, help);
  command.add_option("--runs", choice.runs, "without RUN, the newest below this folder")
      ->capture_default_str();
}

std::filesystem::path chosen_run(const StoredRunChoice& choice) {
  return find_run(local_run(choice.run, choice.runs), choice.runs);
}

void add_overrides(CLI::App& command, std::vector<std::string>& overrides,
                   const std::string& help) {
  command.add_option("--set", overrides, help)->allow_extra_args(false);
  command // after --set, whose values replace those that are there
      .add_option_function<double>(
          "--minutes",
          [&overrides](const double& minutes) {
            overrides.push_back("stop.minutes=" + std::to_string(minutes));
          },
          "time limit, counted from the run's start; the same as --set stop.minutes=")
      ->check(CLI::Range(0.0, 1e7));
}

} // namespace troupe::experiments::commands
