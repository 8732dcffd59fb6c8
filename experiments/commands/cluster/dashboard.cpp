#include <cstdio>
#include <memory>

#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/running/http_flags.hpp"
#include "experiments/commands/running/run_dashboard.hpp"
#include "experiments/commands/running/wait_for_signal.hpp"

namespace troupe::experiments::commands {
namespace {

struct ServeDashboard {
  std::string runs = "runs";
  std::string keys;
  HttpChoice server;
  bool json = false;
};

void serve_dashboard(const ServeDashboard& options) {
  const EndSignals signals;
  const dashboard::Dashboard served({.runs = options.runs,
                                     .http = options.server.http,
                                     .token = options.server.token(),
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
  command->footer("Example: troupe dashboard\n"
                  "         troupe dashboard /data/runs --port 8800 --token-file ~/.troupe_token\n"
                  "Open the printed address, which has the token. From another machine: ssh -L "
                  "8800:127.0.0.1:8800 HOST, or --certificate and --key. Prometheus reads /metrics "
                  "at the same port with the token "
                  "as a bearer token. It ends with SIGINT or SIGTERM.");
  auto options = std::make_shared<ServeDashboard>();
  command->add_option("RUNS", options->runs, "folder of runs")->capture_default_str();
  add_http_flags(*command, options->server);
  command
      ->add_option("--keys", options->keys,
                   "folder of `troupe keys cluster DIR`, to operate runs that have one")
      ->envname("TROUPE_KEYS");
  command->add_flag("--json", options->json, "print the address as JSON");
  command->callback([options] { serve_dashboard(*options); });
}

} // namespace troupe::experiments::commands
