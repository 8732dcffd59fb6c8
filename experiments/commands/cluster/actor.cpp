#include <memory>

#include "actors/supervision/role_process.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/running/deployment.hpp"
#include "experiments/commands/running/head_watch.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/plan.hpp"
#include "experiments/config/plan_workload.hpp"
#include "experiments/run_folder/run_logs.hpp"

namespace troupe::experiments::commands {

void add_actor(CLI::App& app, int& exit_code) {
  struct Options {
    actors::ProcessOrder order;
    std::string config, keys;
    int keeper = 0;
  };
  CLI::App* command = app.add_subcommand(
      "actor", "Runs one role of a run in its own process; started by `troupe train --processes`");
  command->group(""); // hidden from --help: the program itself calls it
  command->footer("Example: troupe actor --role environment --index 0 --head-port 4242 --config "
                  "runs/quickstart/2026-11-21T10-00-00/config.textproto");
  auto options = std::make_shared<Options>();
  actors::ProcessOrder& order = options->order;
  command->add_option("--role", order.role, "role to run")->required();
  command->add_option("--index", order.index, "index of the actor")
      ->required()
      ->check(CLI::Range(0, 65535));
  command->add_option("--epoch", order.epoch, "generation of its head");
  command->add_option("--incarnation", order.incarnation, "number of earlier starts");
  command->add_option("--head-host", order.head_host, "host of the head")->capture_default_str();
  command->add_option("--head-port", order.head_port, "port of the head")
      ->required()
      ->check(CLI::Range(1, 65535));
  command->add_option("--address", order.address, "address to listen on")->capture_default_str();
  command->add_option("--keys", options->keys, "the deployment's folder of keys");
  command->add_option("--config", options->config, "the run's config.textproto")->required();
  command->add_option("--keeper", options->keeper,
                      "process that watches its head, and becomes its parent when that dies");
  command->callback([options, &exit_code] {
    if (options->keeper > 0) {
      outlive_head(options->keeper, role_log(std::filesystem::path(options->config).parent_path(),
                                             options->order.role, options->order.index));
    }
    const Experiment experiment = load_experiment(options->config);
    auto config = plan_run(experiment);
    use_run_folder(config, std::filesystem::path(options->config).parent_path(), true);
    plan_workload(experiment, config);
    exit_code = actors::run_actor(config, options->order, read_keys(options->keys));
  });
}

} // namespace troupe::experiments::commands
