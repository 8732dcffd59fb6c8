#include <cstdio>
#include <memory>

#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/running/run_dashboard.hpp"
#include "experiments/commands/running/wait_for_signal.hpp"
#include "experiments/web/secrets.hpp"

namespace troupe::experiments::commands {
namespace {

struct ServeDashboard {
  std::string runs = "runs";
  std::string keys, token_file;
  std::uint16_t port = 0;
  bool json = false;
};

void serve_dashboard(const ServeDashboard& options) {
  const EndSignals signals;
  const dashboard::Dashboard served(
      {.runs = options.runs,
       .port = options.port,
       .token = options.token_file.empty() ? web::new_token() : web::token_of(options.token_file),
       .connect = connect_to_heads(options.keys)});
  if (options.json) {
    print_json({{"address", served.address()}});
  } else {
    std::printf("dashboard of %s: %s\n", options.runs.c_str(), served.address().c_str());
  }
  std::fflush(stdout);
  signals.wait(false);
}

} // namespace

void add_dashboard(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "dashboard", "Serves a page that shows and compares runs and operates live ones");
  command->footer(
      "Example: troupe dashboard\n"
      "         troupe dashboard /data/runs --port 8800 --token-file ~/.troupe_token\n"
      "It listens on 127.0.0.1 and needs the token in the printed address. From another machine: "
      "ssh -L 8800:127.0.0.1:8800 HOST. Prometheus reads /metrics at the same port with the token "
      "as a bearer token. It ends with SIGINT or SIGTERM.");
  auto options = std::make_shared<ServeDashboard>();
  command->add_option("RUNS", options->runs, "folder of runs")->capture_default_str();
  command->add_option("--port", options->port, "port on 127.0.0.1; default: a free one")
      ->check(CLI::Range(1, 65535));
  command
      ->add_option("--keys", options->keys,
                   "folder of `troupe keys cluster DIR`, to operate runs that have one")
      ->envname("TROUPE_KEYS");
  command->add_option("--token-file", options->token_file,
                      "file with the token, made if it does not exist; default: a new token each "
                      "time");
  command->add_flag("--json", options->json, "print the address as JSON");
  command->callback([options] { serve_dashboard(*options); });
}

} // namespace troupe::experiments::commands
