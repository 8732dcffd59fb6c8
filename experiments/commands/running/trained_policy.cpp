#include "experiments/commands/running/trained_policy.hpp"

#include <stdexcept>

#include "env/make/make.hpp"
#include "experiments/commands/running/evaluate_run.hpp"
#include "experiments/config/agent_choice.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/on_data.hpp"
#include "experiments/config/plan.hpp"
#include "learner/acting/collector.hpp"
#include "learner/acting/transition_spec.hpp"

namespace troupe::experiments::commands {

void add_checkpoint_flags(CLI::App& command, CheckpointChoice& choice, const std::string& absent) {
  CLI::Option* updates = command
                             .add_option("--checkpoint,--step", choice.updates,
                                         "updates of the checkpoint; default: " + absent)
                             ->check(CLI::NonNegativeNumber);
  command.add_flag("--best", choice.best, "the checkpoint with the best evaluation")
      ->excludes(updates);
}

CheckpointFolder choose_checkpoint(const std::filesystem::path& run,
                                   const CheckpointChoice& choice) {
  return choice.best ? find_best_checkpoint(run) : find_checkpoint(run, choice.updates);
}

TrainedPolicy load_trained_policy(const std::filesystem::path& run,
                                  const CheckpointFolder& checkpoint) {
  const Experiment experiment = load_experiment(run / "config.textproto", {});
  if (is_on_data(experiment))
    throw std::invalid_argument(run.string()
                                + " trains on data and has no policy; its parameters are "
                                  "checkpoints/*/learner.safetensors");
  TrainedPolicy made{.config = plan_run(experiment), .contract = {}, .spec = {}, .policy = {}};
  made.config.environment.episode_log.clear(); // it is the training's
  made.contract = contract_of(made.config.environment);
  made.contract.agent = chosen_agent(experiment).kind->name;
  made.contract.experiment = experiment.name();
  made.contract.version = TROUPE_VERSION;
  made.contract.updates = checkpoint.updates;
  env::EnvironmentConfig raw = made.config.environment;
  raw.normalization = {};
  made.spec = env::make_environment(raw)->spec();
  const auto environment = env::make_environment(made.config.environment);
  const auto transitions = learner::stored_by(
      *made.config.agent, learner::transition_spec(environment->spec(), made.config.replay.n_step,
                                                   made.config.replay.discount));
  made.policy = made.config.agent->make_policy(transitions);
  made.policy->load(policy_parameters(made.config, transitions, checkpoint.path));
  made.contract.state_size = made.policy->state_size();
  return made;
}

} // namespace troupe::experiments::commands
