#include <memory>
#include <stdexcept>

#include "experiments/commands/commands.hpp"
#include "experiments/commands/deployment.hpp"
#include "experiments/config.hpp"
#include "experiments/plan.hpp"
#include "experiments/plan_workload.hpp"

namespace troupe::experiments::commands {

void add_actor(CLI::App& app, int& exit_code) {
  struct Options {
    actors::ProcessOrder order;
    std::string config, keys;
  };
  CLI::App* command =
      app.add_subcommand("actor", "Plays one role of a run in a process of its own; started by "
                                  "`troupe train --processes`");
  command->group(""); // not for people
  command->footer("Example: troupe actor --role environment --index 0 --head-port 4242 --config "
                  "runs/quickstart/2026-11-21T10-00-00/config.textproto");
  auto options = std::make_shared<Options>();
  actors::ProcessOrder& order = options->order;
  command->add_option("--role", order.role, "what it plays")->required();
  command->add_option("--index", order.index, "which of them")
      ->required()
      ->check(CLI::Range(0, 65535));
  command->add_option("--epoch", order.epoch, "the life of its head");
  command->add_option("--incarnation", order.incarnation, "how often it was started before");
  command->add_option("--head-host", order.head_host, "where the head listens")
      ->capture_default_str();
  command->add_option("--head-port", order.head_port, "and at which port")
      ->required()
      ->check(CLI::Range(1, 65535));
  command->add_option("--address", order.address, "what it listens at")->capture_default_str();
  command->add_option("--keys", options->keys, "the deployment's folder of keys");
  command->add_option("--config", options->config, "the run's config.textproto")->required();
  command->callback([options, &exit_code] {
    const Experiment experiment = load_experiment(options->config);
    auto config = plan_run(experiment);
    use_run_folder(config, std::filesystem::path(options->config).parent_path(), true);
    plan_workload(experiment, config);
#ifdef TROUPE_HAS_ACTORS
    exit_code = actors::run_actor(config, options->order, read_keys(options->keys));
#else
    exit_code = kMistake;
    throw std::invalid_argument("this program was built without the actors (TROUPE_COMPONENTS)");
#endif
  });
}

} // namespace troupe::experiments::commands
