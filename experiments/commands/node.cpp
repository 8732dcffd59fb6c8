#include <memory>
#include <stdexcept>

#include "experiments/commands/commands.hpp"
#include "experiments/config.hpp"
#include "experiments/plan.hpp"
#include "experiments/plan_workload.hpp"

namespace troupe::experiments::commands {

void add_node(CLI::App& app, int& exit_code) {
  struct Options {
    std::string role;
    int index = 0;
    int head_port = 0;
    std::string config;
  };
  CLI::App* command = app.add_subcommand("node", "Plays one role of a run in a process of its own; "
                                                 "started by `troupe train --processes`");
  command->group(""); // not for people
  command->footer("Example: troupe node --role environment --index 0 --head-port 4242 --config "
                  "runs/quickstart/2026-11-21T10-00-00/config.textproto");
  auto options = std::make_shared<Options>();
  command->add_option("--role", options->role, "what it plays")->required();
  command->add_option("--index", options->index, "which of them")
      ->required()
      ->check(CLI::Range(0, 65535));
  command->add_option("--head-port", options->head_port, "where the head listens on 127.0.0.1")
      ->required()
      ->check(CLI::Range(1, 65535));
  command->add_option("--config", options->config, "the run's config.textproto")->required();
  command->callback([options, &exit_code] {
    const Experiment experiment = load_experiment(options->config);
    auto config = plan_run(experiment);
    use_run_folder(config, std::filesystem::path(options->config).parent_path());
    plan_workload(experiment, config);
#ifdef TROUPE_HAS_ACTORS
    exit_code = actors::run_node(config, options->role, options->index,
                                 static_cast<std::uint16_t>(options->head_port));
#else
    exit_code = kMistake;
    throw std::invalid_argument("this program was built without the actors (TROUPE_COMPONENTS)");
#endif
  });
}

} // namespace troupe::experiments::commands
