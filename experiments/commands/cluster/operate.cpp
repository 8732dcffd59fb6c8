#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "env/text/number_in.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/running/run_choice.hpp"
#include "experiments/run_folder/run_folder.hpp"

namespace troupe::experiments::commands {
namespace {

constexpr double kMostSeconds = 86'400;
constexpr useconds_t kPeriodMicroseconds = 100'000;

struct StopOptions {
  RunChoice choice;
  double grace = 120;
};

struct ChangeOptions {
  RunChoice choice;
  std::vector<std::string> words; // RUN, and ROLE=COUNT for `scale`
  std::string role, node;         // for `restart`
  double seconds = 600;
};

std::chrono::seconds whole_seconds(double seconds) {
  return std::chrono::seconds(static_cast<std::int64_t>(seconds + 0.5));
}

/// Returns true once no process works in the run's folder, false after `seconds`.
bool wait_until_over(const LiveRun& live, double seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < deadline) {
    const auto held = is_run_held(live.run);
    const bool told = !std::filesystem::exists(live.run / "head.json");
    if (held ? !*held : told) {
      return true;
    }
    ::usleep(kPeriodMicroseconds); // the release of a lock sends no notification
  }
  return false;
}

void stop(const StopOptions& options) {
  const LiveRun live = find_live_run(options.choice.run, options.choice.runs);
  try {
    actors::Control control(control_place(live, options.choice));
    control.stop();
  } catch (const actors::NoHead& gone) {
    if (!wait_until_over(live, 1)) {
      throw;
    }
  }
  if (!wait_until_over(live, options.grace)) {
    throw std::runtime_error(live.run.string() + ": it has not ended within "
                             + std::to_string(whole_seconds(options.grace).count()) + " s (process "
                             + std::to_string(live.head.process) + " on " + live.head.host
                             + "); see `troupe status`, increase --grace, or kill that process");
  }
  const auto checkpoints = complete_checkpoints(live.run);
  std::printf("%s has ended%s\n", live.run.c_str(),
              checkpoints.empty()
                  ? "; it has no checkpoint"
                  : (", its checkpoint is " + checkpoints.back().path.string()).c_str());
}

struct Scale {
  std::string role;
  int count = 0;
};

Scale parse_scale(const std::string& text) {
  const auto equals = text.find('=');
  const auto count = env::number_in<unsigned>(text.substr(equals + 1), 0, 999'999'999);
  if (equals == 0 || !count) {
    throw std::invalid_argument(text + ": must be ROLE=COUNT, e.g. environment=16");
  }
  return {text.substr(0, equals), static_cast<int>(*count)};
}

void scale(ChangeOptions& options) {
  std::vector<Scale> wanted;
  for (const std::string& word : options.words) {
    if (word.find('=') != std::string::npos && word.find('/') == std::string::npos) {
      wanted.push_back(parse_scale(word));
    } else if (options.choice.run.empty()) {
      options.choice.run = word;
    } else {
      throw std::invalid_argument(word + ": a RUN is already given; write ROLE=COUNT");
    }
  }
  if (wanted.empty()) {
    throw std::invalid_argument("give the change as ROLE=COUNT, e.g. environment=16");
  }
  const LiveRun live = find_live_run(options.choice.run, options.choice.runs);
  actors::Control control(control_place(live, options.choice));
  for (const Scale& one : wanted) {
    std::printf("%s\n", control.scale(one.role, one.count, whole_seconds(options.seconds)).c_str());
  }
}

/// Asks the run's head to do something and prints what it did.
template <class Action>
void act_on(const ChangeOptions& options, const Action& action) {
  const LiveRun live = find_live_run(options.choice.run, options.choice.runs);
  actors::Control control(control_place(live, options.choice));
  std::printf("%s\n", action(control, whole_seconds(options.seconds)).c_str());
}

void add_deadline(CLI::App& command, ChangeOptions& options) {
  command.add_option("--seconds", options.seconds, "time limit")
      ->check(CLI::Range(1.0, kMostSeconds))
      ->capture_default_str();
}

void record_timeline(const ChangeOptions& options, std::int64_t updates,
                     const std::filesystem::path& out) {
  if (out.has_parent_path() && !std::filesystem::is_directory(out.parent_path())) {
    throw std::invalid_argument("--out " + out.string() + ": its folder does not exist; make it");
  }
  const LiveRun live = find_live_run(options.choice.run, options.choice.runs);
  actors::Control control(control_place(live, options.choice));
  std::printf("%s\n", control.timeline(updates, whole_seconds(options.seconds)).c_str());
  if (!out.empty()) {
    const auto file = newest_timeline(live.run);
    std::error_code error;
    std::filesystem::copy_file(file, out, std::filesystem::copy_options::overwrite_existing, error);
    if (error) {
      throw std::runtime_error("--out " + out.string() + ": cannot be written: " + error.message()
                               + "; the trace is " + file.string());
    }
  }
}

} // namespace

void add_stop(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "stop", "Stops a run after a checkpoint, as SIGTERM does, and waits for its end");
  command->footer(operating_footer("Example: troupe stop\n"
                                   "         troupe stop runs/quickstart/2026-11-21T10-00-00 "
                                   "--grace 600"));
  auto options = std::make_shared<StopOptions>();
  command->add_option("RUN", options->choice.run, "the run's folder");
  add_run_choice(*command, options->choice);
  command
      ->add_option("--grace", options->grace,
                   "seconds to wait for the end; exit code 1 if it takes longer")
      ->check(CLI::Range(1.0, kMostSeconds))
      ->capture_default_str();
  command->callback([options] { stop(*options); });
}

void add_scale(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("scale", "Changes the number of environment actors of a live run");
  command->footer(operating_footer(
      "Example: troupe scale environment=16\n"
      "New actors are placed as at the start; surplus ones stop, the newest first. Checkpoints "
      "keep the number. The numbers of shards, learners and parameter servers cannot change."));
  auto options = std::make_shared<ChangeOptions>();
  command
      ->add_option("[RUN] ROLE=COUNT", options->words,
                   "a run's folder, and the new number of a role's actors")
      ->required();
  add_run_choice(*command, options->choice);
  add_deadline(*command, *options);
  command->callback([options] { scale(*options); });
}

void add_restart(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("restart", "Restarts the processes of a live run, one after the other");
  command->footer(operating_footer(
      "Example: troupe restart --role environment\n"
      "         troupe restart --node n-1\n"
      "Waits for each process before it restarts the next; synchronous learners restart together. "
      "Shards, learners and parameter servers write a snapshot first, so that nothing is lost. "
      "These restarts do not count against actors.restarts."));
  auto options = std::make_shared<ChangeOptions>();
  command->add_option("RUN", options->choice.run, "the run's folder");
  add_run_choice(*command, options->choice);
  command->add_option("--role", options->role,
                      "only this role (environment) or actor (environment/3)");
  command->add_option("--node", options->node, "only processes on this node");
  add_deadline(*command, *options);
  command->callback([options] {
    act_on(*options, [&](actors::Control& control, std::chrono::seconds deadline) {
      return control.restart(options->role, options->node, deadline);
    });
  });
}

void add_checkpoint(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "checkpoint", "Has a live run write a checkpoint now, and waits until it is complete");
  command->footer(operating_footer("Example: troupe checkpoint"));
  auto options = std::make_shared<ChangeOptions>();
  command->add_option("RUN", options->choice.run, "the run's folder");
  add_run_choice(*command, options->choice);
  add_deadline(*command, *options);
  command->callback([options] {
    act_on(*options, [](actors::Control& control, std::chrono::seconds deadline) {
      return control.checkpoint(deadline);
    });
  });
}

void add_pause(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("pause", "Pauses the environments and learners of a live run");
  command->footer(
      operating_footer("Example: troupe pause\n"
                       "         troupe pause --off\n"
                       "Its processes keep their memory and can be scaled and restarted. A run "
                       "that ends while it is paused is no longer paused when it is resumed. "
                       "Paused minutes do not count for stop.minutes."));
  auto options = std::make_shared<ChangeOptions>();
  auto off = std::make_shared<bool>(false);
  command->add_option("RUN", options->choice.run, "the run's folder");
  command->add_flag("--off", *off, "ends the pause");
  add_run_choice(*command, options->choice);
  add_deadline(*command, *options);
  command->callback([options, off] {
    act_on(*options, [&](actors::Control& control, std::chrono::seconds deadline) {
      return control.pause(!*off, deadline);
    });
  });
}

void add_limit(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("limit", "Changes how often a live run samples each item that it inserts");
  command->footer(operating_footer(
      "Example: troupe limit --samples-per-insert 16\n"
      "The rate limiters of all shards change at once, and count from then on. Restarted shards "
      "and a resumed run keep the new ratio, unless replay.samples_per_insert or "
      "replay.error_buffer changes. Runs with a queue and deterministic runs refuse the change."));
  auto options = std::make_shared<ChangeOptions>();
  auto ratio = std::make_shared<std::pair<double, double>>(0.0, 0.0);
  command->add_option("RUN", options->choice.run, "the run's folder");
  command->add_option("--samples-per-insert", ratio->first, "sampled items per inserted item")
      ->required();
  command
      ->add_option("--error-buffer", ratio->second,
                   "how far samples and inserts may drift apart, over all shards; 0: automatic, as "
                   "for replay.error_buffer")
      ->capture_default_str();
  add_run_choice(*command, options->choice);
  add_deadline(*command, *options);
  command->callback([options, ratio] {
    act_on(*options, [&](actors::Control& control, std::chrono::seconds deadline) {
      return control.limit(ratio->first, ratio->second, deadline);
    });
  });
}

void add_timeline(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "timeline", "Records what each actor of a live run does during its next updates");
  command->footer(operating_footer(
      "Example: troupe timeline --updates 20 --out trace.json\n"
      "Writes RUN/timelines/<updates>.json, a Chrome trace for https://ui.perfetto.dev or "
      "chrome://tracing; the 10 newest are kept. Its processes are the learners, shards and "
      "environment actors, with times from the head's clock. Training continues meanwhile."));
  struct Options : ChangeOptions {
    std::int64_t updates = 10;
    std::filesystem::path out;
  };
  auto options = std::make_shared<Options>();
  options->seconds = 120;
  command->add_option("RUN", options->choice.run, "the run's folder");
  command
      ->add_option("--updates", options->updates,
                   "updates of each learner to record, from 1 to 1000")
      ->capture_default_str();
  command->add_option("--out", options->out, "another file to write the trace to");
  add_run_choice(*command, options->choice);
  add_deadline(*command, *options);
  command->callback([options] { record_timeline(*options, options->updates, options->out); });
}

} // namespace troupe::experiments::commands
