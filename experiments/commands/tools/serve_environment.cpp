#include <cstdio>
#include <memory>

#include "env/make/make.hpp"
#include "env/remote/environment_server.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/running/wait_for_signal.hpp"

namespace troupe::experiments::commands {
namespace {

struct ServeOptions {
  env::EnvironmentConfig environment{};
  env::PixelOptions pixels{};
  bool with_pixels = false;
  bool wrapped = false;
  env::EnvironmentServerOptions server{};
  std::string secret_key, allowed_keys;
  double silence_seconds = 10;
  bool end_with_input = false;
  bool json = false;
};

std::unique_ptr<env::Environment> make_served(const ServeOptions& options) {
  const bool plain = !options.with_pixels && !options.wrapped
                     && options.environment.frame_stack == 1
                     && options.environment.action_repeat == 1;
  if (plain) {
    return env::make_bare(options.environment);
  }
  env::EnvironmentConfig config = options.environment;
  if (options.with_pixels) {
    config.pixels = options.pixels;
  }
  return env::make_environment(config);
}

void serve(ServeOptions options) {
  auto signals = std::make_unique<EndSignals>();
  options.server.silence =
      std::chrono::milliseconds(static_cast<std::int64_t>(options.silence_seconds * 1000));
  if (!options.secret_key.empty()) {
    options.server.keys = env::wire::read_server_keys(options.secret_key, options.allowed_keys);
  }
  options.server.log = [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
  const env::EnvironmentServer server(
      nullptr, [&] { return make_served(options); }, options.server);
  if (options.json) {
    print_json({{"endpoint", server.endpoint()},
                {"environment", server.spec().name},
                {"count", options.server.environments}});
  } else {
    std::printf("serving %zu of %s at %s\n", options.server.environments,
                server.spec().name.c_str(), server.endpoint().c_str());
  }
  std::fflush(stdout);
  signals->wait(options.end_with_input);
  signals.reset();
  const auto counters = server.counters();
  std::fprintf(stderr, "served %lld turns, %lld of them failed; %lld messages were dropped\n",
               static_cast<long long>(counters.turns), static_cast<long long>(counters.failures),
               static_cast<long long>(counters.garbage));
}

} // namespace

void add_serve_environment(CLI::App& serving) {
  CLI::App* command = serving.add_subcommand(
      "environment", "Serves an environment to Python's troupe_env or to task \"remote\"");
  command->footer("Example: troupe serve environment cheetah_run --endpoint ipc:///tmp/cheetah "
                  "--count 16\n"
                  "and in Python: troupe_env.GymnasiumVectorEnv(endpoint=\"ipc:///tmp/cheetah\", "
                  "num_envs=16)");
  auto options = std::make_shared<ServeOptions>();
  command->add_option("TASK", options->environment.task, "`troupe list environments` names them")
      ->required();
  command->add_option("--endpoint", options->server.endpoint,
                      "ipc://<path> or tcp://<host>:<port>; * finds a port");
  command
      ->add_option("--count", options->server.environments,
                   "number of environments for all clients")
      ->check(CLI::Range(1, 4096));
  command->add_flag(
      "--wrapped", options->wrapped,
      "one float32 array and actions in [-1, 1], as in training, instead of the task's "
      "own arrays and bounds");
  command->add_flag("--pixels", options->with_pixels, "pictures instead of states");
  command->add_option("--height", options->pixels.height, "height of pictures")->needs("--pixels");
  command->add_option("--width", options->pixels.width, "width of pictures")->needs("--pixels");
  command->add_option("--camera", options->pixels.camera, "name or number of the camera")
      ->needs("--pixels");
  command->add_option("--frame-stack", options->environment.frame_stack, "frames");
  command->add_option("--action-repeat", options->environment.action_repeat, "sums the rewards");
  command->add_option("--plugin", options->environment.plugin, "shared library with the task");
  command
      ->add_option("--option", options->environment.options,
                   "key=value option of the task; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--models", options->environment.models, "folder of the suite's XML files");
  command
      ->add_option("--silence", options->silence_seconds,
                   "seconds without heartbeats until a client loses its environments")
      ->check(CLI::Range(0.001, 86400.0));
  command->add_flag("--can-save", options->server.can_save,
                    "clients may save and load states; only for clients that you trust");
  command->add_flag("--allow-other-hosts", options->server.allow_other_hosts,
                    "allow tcp:// on interfaces other than loopback, without encryption; also "
                    "admits every user of this host");
  auto* secret = command->add_option(
      "--secret-key", options->secret_key,
      "file of `troupe keys new`; encrypts, and allows tcp:// on interfaces other than loopback");
  auto* allowed = command->add_option("--allowed-keys", options->allowed_keys,
                                      "file with the public keys of the allowed clients");
  secret->needs(allowed);
  allowed->needs(secret);
  command->add_flag("--end-with-input", options->end_with_input, "end when standard input ends");
  command->add_flag("--json", options->json, "print the endpoint as JSON");
  command->callback([options] { serve(*options); });
}

} // namespace troupe::experiments::commands
