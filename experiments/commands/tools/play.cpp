#include <cstdio>
#include <memory>

#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/running/http_flags.hpp"
#include "experiments/commands/running/run_flags.hpp"
#include "experiments/commands/running/trained_policy.hpp"
#include "experiments/commands/running/wait_for_signal.hpp"
#include "experiments/play/play_server.hpp"

namespace troupe::experiments::commands {
namespace {

struct Playing {
  StoredRunChoice run;
  play::PlayOptions shown;
  HttpChoice server{.http = {.thread_name = "play"}};
  CheckpointChoice checkpoint;
  bool no_effects = false;
  bool json = false;
};

void play_run(Playing options) {
  const EndSignals signals;
  const std::string run = chosen_run(options.run).string();
  const CheckpointFolder checkpoint = choose_checkpoint(run, options.checkpoint);
  TrainedPolicy trained = load_trained_policy(run, checkpoint);
  options.shown.stage.effects = !options.no_effects;
  play::Player player(trained.config.environment, std::move(trained.policy), options.shown);
  const play::PlayServer server(player,
                                {.run = run,
                                 .task = trained.config.environment.task,
                                 .agent = trained.contract.agent,
                                 .updates = checkpoint.updates},
                                options.server.http, options.server.token());
  if (options.json)
    print_json({{"address", server.address()}, {"updates", checkpoint.updates}});
  else
    std::printf("%s after %lld updates is playing at %s\n", run.c_str(),
                static_cast<long long>(checkpoint.updates), server.address().c_str());
  std::fflush(stdout);
  signals.wait(false);
}

} // namespace

void add_play(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "play", "Shows a run's policy acting in a browser, where the mouse can push it");
  command->footer("Example: troupe play runs/quickstart/2026-11-21T10-00-00 --best\n"
                  "Open the printed address, which has the token. From another machine: ssh -L "
                  "8900:127.0.0.1:8900 HOST with --port 8900, or --certificate and --key. The ray "
                  "caster draws; pictures are sent "
                  "as fast as the browser takes them. It ends with SIGINT or SIGTERM.");
  auto options = std::make_shared<Playing>();
  add_stored_run(*command, options->run, "the run's folder");
  add_checkpoint_flags(*command, options->checkpoint);
  add_http_flags(*command, options->server);
  command->add_option("--width", options->shown.stage.width, "width of the pictures in pixels")
      ->check(CLI::Range(16, 4096))
      ->capture_default_str();
  command->add_option("--height", options->shown.stage.height, "height of the pictures in pixels")
      ->check(CLI::Range(16, 4096))
      ->capture_default_str();
  command->add_flag("--no-effects", options->no_effects,
                    "without shadows, reflections and smooth edges: faster");
  command->add_option("--quality", options->shown.stage.quality, "JPEG quality of the pictures")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--rate", options->shown.pictures_per_second, "maximum pictures per second")
      ->check(CLI::Range(0.1, 240.0))
      ->capture_default_str();
  command->add_option("--seed", options->shown.seed, "seed of the first episode")
      ->capture_default_str();
  command->add_flag("--json", options->json, "print the address as JSON");
  command->callback([options] { play_run(std::move(*options)); });
}

} // namespace troupe::experiments::commands
