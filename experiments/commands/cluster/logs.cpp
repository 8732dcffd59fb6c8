#include <algorithm>
#include <cstdio>
#include <memory>

#include "env/legible.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/running/run_choice.hpp"
#include "experiments/commands/running/wait_for_signal.hpp"
#include "experiments/run_folder/run_logs.hpp"

namespace troupe::experiments::commands {
namespace {

constexpr std::int64_t kMostLines = 1'000'000;
constexpr int kLogsPeriodMilliseconds = 200; // polling, because files do not signal growth

struct LogsOptions {
  RunChoice choice;
  LogChoice wanted;
  std::int64_t lines = 100;
  bool follow = false;
};

void print(const LogLine& line) {
  std::printf("%s %s: %s\n", line.time.empty() ? "-" : line.time.c_str(), line.who.c_str(),
              env::legible_line(line.text).c_str());
}

void logs(const LogsOptions& options) {
  const auto run = find_run_with_logs(options.choice.run, options.choice.runs);
  RunLogs reader(run, options.wanted);
  const auto before = reader.read();
  const auto first = std::max<std::int64_t>(0, std::ssize(before) - options.lines);
  std::for_each(before.begin() + first, before.end(), print);
  if (!options.follow) {
    return;
  }
  const EndSignals signals;
  for (bool alive = true, ended = false; alive && !ended;) {
    std::fflush(stdout);
    ended = signals.wait_for(kLogsPeriodMilliseconds);
    alive = is_run_held(run).value_or(std::filesystem::exists(run / "head.json"));
    for (const LogLine& line : reader.read()) {
      print(line);
    }
  }
}

} // namespace

void add_logs(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "logs", "Prints the logs of the head, nodes and processes of a run, by time");
  command->footer("Example: troupe logs --role environment --lines 50 --follow\n"
                  "RUN is a run's folder, on any host that sees it, whether the run is live or "
                  "over; no keys are needed.\n"
                  "Exit codes: 0 done (with --follow when the run is over, or at a signal), 2 a "
                  "mistake (no such run, no such role).");
  auto options = std::make_shared<LogsOptions>();
  command->add_option("RUN", options->choice.run, "the run's folder");
  command
      ->add_option("--runs", options->choice.runs,
                   "without RUN, the newest live run below this folder, or else the newest")
      ->capture_default_str();
  command->add_option("--role", options->wanted.role,
                      "head, replay, learner, environment, …, or a single one: environment/3");
  command->add_option("--node", options->wanted.node, "only this node and its processes");
  command->add_option("--lines", options->lines, "number of latest lines")
      ->check(CLI::Range(std::int64_t{0}, kMostLines))
      ->capture_default_str();
  command->add_flag("--follow", options->follow, "print new lines until the run is over");
  command->callback([options] { logs(*options); });
}

} // namespace troupe::experiments::commands
