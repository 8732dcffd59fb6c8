#include "experiments/program.hpp"

#include <CLI/CLI.hpp>
#include <google/protobuf/stubs/logging.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "env/amx.hpp"
#include "env/legible.hpp"
#include "env/render/gl_context.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/help_format.hpp"
#include "experiments/commands/mistakes.hpp"
#include "experiments/config/config.hpp"

namespace troupe::experiments {
namespace {

/// CLI11's ranges admit NaN, because it is neither below nor above the range. Check here that every
/// number of every command is a number.
void refuse_what_is_no_number(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_name().starts_with("FLOAT")) {
      option->check([](const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool read = end != text.c_str();
        return read && !std::isfinite(value) ? text + " is not a finite number" : std::string();
      });
    }
  }
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    refuse_what_is_no_number(*command);
  }
}

int run_command(int argc, char** argv) {
  int exit_code = commands::kDone;
  CLI::App app("Troupe: asynchronous reinforcement learning with actors.");
  app.name("troupe");
  app.formatter(commands::help_format()); // every command inherits it
  app.set_version_flag("--version", TROUPE_VERSION);
  app.require_subcommand(1);
  app.footer("Example: troupe train quickstart\n"
             "Exit codes: 0 done, 1 the run failed, 2 a mistake in flags, files or keys, 130 "
             "stopped by a second signal; the last line on standard error is the first cause.");
  commands::add_train(app, exit_code);
  commands::add_resume(app, exit_code);
  commands::add_sweep(app, exit_code);
  commands::add_evaluate(app);
  commands::add_record(app);
  commands::add_export_policy(app);
  commands::add_report(app);
  commands::add_list(app);
  commands::add_doctor(app);
  commands::add_completion(app);
  commands::add_new(app);
  commands::add_bench(app);
  commands::add_check(app);
  commands::add_render(app);
  commands::add_dataset(app, exit_code);
  commands::add_play(app);
  commands::add_serve(app);
  commands::add_replay(app);
  commands::add_keys(app);
  commands::add_actor(app, exit_code);
  commands::add_launch(app, exit_code);
  commands::add_node(app, exit_code);
  commands::add_status(app);
  commands::add_top(app);
  commands::add_logs(app);
  commands::add_dashboard(app);
  commands::add_stop(app);
  commands::add_scale(app);
  commands::add_checkpoint(app);
  commands::add_pause(app);
  commands::add_limit(app);
  commands::add_timeline(app);
  commands::add_restart(app);
  commands::add_transparent(app, exit_code);
  refuse_what_is_no_number(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for) { // --help, --version
    return app.exit(asked_for);
  } catch (const CLI::ParseError& mistake) {
    std::fprintf(stderr, "troupe: %s\n",
                 env::legible(commands::mistake_text(app, mistake)).c_str());
    return commands::kMistake;
  }
  return exit_code;
}

/// Flush standard output first, so that the cause is the last line even if both go to the same
/// file.
void complain(const char* text) {
  std::fflush(stdout);
  std::fprintf(stderr, "troupe: %s\n", env::legible(text).c_str());
}

} // namespace

int run_program(int argc, char** argv) {
  env::avoid_broken_amx();
  env::draw_on_calling_thread();
  // Invalid messages are refused with our own error text. Without this, a stranger could flood the
  // log with protobuf's lines.
  google::protobuf::SetLogHandler(nullptr);
  try {
    return run_command(argc, argv);
  } catch (const ConfigError& mistake) {
    for (std::size_t i = mistake.complaints().size(); i-- > 0;) { // the first complaint comes last
      complain(mistake.complaints()[i].c_str());
    }
    return commands::kMistake;
  } catch (const std::invalid_argument& mistake) {
    complain(mistake.what());
    return commands::kMistake;
  } catch (const std::exception& failure) {
    complain(failure.what());
    return commands::kFailed;
  }
}

} // namespace troupe::experiments
