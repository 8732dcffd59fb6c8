#include "experiments/commands/commands.hpp"

namespace troupe::experiments::commands {

void add_replay(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("replay", "Serves replay tables to programs of any language, and tells of "
                                   "those that somebody serves");
  command->require_subcommand(1);
  command->footer("Example: troupe replay serve --listen tcp://127.0.0.1:7400 --column "
                  "state:float32:24 --column action:float32:6\n"
                  "         troupe replay info tcp://127.0.0.1:7400");
  add_replay_serve(*command, exit_code);
  add_replay_info(*command, exit_code);
}

} // namespace troupe::experiments::commands
