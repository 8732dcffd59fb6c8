#include "experiments/commands/commands.hpp"

namespace troupe::experiments::commands {

void add_replay(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "replay", "Serves replay tables to programs in any language, and inspects served tables");
  command->require_subcommand(1);
  command->footer("Example: troupe replay serve --listen tcp://127.0.0.1:7400 --column "
                  "state:float32:24 --column action:float32:6\n"
                  "         troupe replay info tcp://127.0.0.1:7400");
  add_replay_serve(*command);
  add_replay_info(*command);
}

} // namespace troupe::experiments::commands
