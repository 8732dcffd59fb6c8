#include "experiments/commands/training/evaluate_recorded.hpp"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "env/make/make.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/running/evaluate_run.hpp"
#include "experiments/commands/running/record_episodes.hpp"
#include "experiments/commands/running/signals.hpp"
#include "experiments/commands/training/recorded_estimates.hpp"
#include "experiments/config/plan.hpp"
#include "learner/acting/best_actions.hpp"
#include "learner/acting/transition_spec.hpp"
#include "replay/recordings/recording.hpp"

namespace troupe::experiments::commands {
namespace {

/// Throws std::invalid_argument that names the difference.
void check_recorded_in(const replay::RecordingSpec& spec, const Experiment& experiment,
                       const env::EnvironmentConfig& config,
                       const replay::TransitionSpec& transitions,
                       const std::filesystem::path& folder) {
  replay::check_fits(spec, transitions, folder);
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument("the recording " + folder.string()
                                + " does not fit the run's environment: " + what
                                + "; use a recording of the same environment");
  };
  const auto repeat = spec.about.find("action_repeat");
  const std::string ours = std::to_string(experiment.environment().action_repeat());
  if (repeat != spec.about.end() && repeat->second != ours)
    refuse("environment.action_repeat is " + ours + "; the recording has " + repeat->second);
  const PlayedActions action = played_actions(config);
  const auto clip = spec.about.find("action_clip");
  if (clip != spec.about.end() && clip->second != action.limit_text())
    refuse("environment.action_clip limits actions to " + action.limit_text()
           + "; those of the recording are limited to " + clip->second);
  for (std::size_t i = 0; i < spec.action_minimum.size(); ++i)
    if (transitions.choices_of(i) == 0
        && (std::abs(spec.action_minimum[i] - action.minimum[i]) > 1e-6
            || std::abs(spec.action_maximum[i] - action.maximum[i]) > 1e-6))
      refuse("action " + std::to_string(i) + " is within " + std::to_string(action.minimum[i])
             + " and " + std::to_string(action.maximum[i]) + "; in the recording it is within "
             + std::to_string(spec.action_minimum[i]) + " and "
             + std::to_string(spec.action_maximum[i]));
}

void print_estimate(const char* name, const Estimate& estimate) {
  std::printf("  %-44s %10.4g", name, estimate.value);
  if (std::isfinite(estimate.interval.low)) // unknown for one episode
    std::printf(" (%.4g to %.4g)", estimate.interval.low, estimate.interval.high);
  std::printf("\n");
}

void print_text(const RecordedEstimates& made, double discount) {
  std::printf("discounted return and 95 %% interval, discount %g:\n", discount);
  print_estimate("fitted Q evaluation", made.fitted);
  if (made.weighed) {
    print_estimate("importance sampling", made.weighed->plain);
    print_estimate("self-normalised importance sampling", made.weighed->self_normalised);
    print_estimate("doubly robust", made.weighed->doubly_robust);
    print_estimate("self-normalised doubly robust", made.weighed->self_normalised_doubly_robust);
  }
  print_estimate("recorded", made.recorded);
  std::printf("recorded without discount: %.4g\n", made.recorded_return);
  if (made.effective_episodes)
    std::printf("the weights of importance sampling leave %.4g effective episodes\n",
                *made.effective_episodes);
  if (!made.refusal.empty())
    std::printf("no importance sampling: %s\n", made.refusal.c_str());
  if (made.coverage.distance)
    std::printf("its actions differ from the recorded ones by %.2g on average, of at most 2\n",
                *made.coverage.distance);
  if (made.coverage.agreement)
    std::printf("its choices are the recorded ones in %.0f %% of the steps\n",
                100 * *made.coverage.agreement);
  if (made.coverage.outside)
    std::printf("in %.0f %% of the states its action is unlike any recorded one (5 %%: as "
                "recorded)\n",
                100 * *made.coverage.outside);
  for (const std::string& warning : made.warnings)
    std::printf("warning: %s\n", warning.c_str());
}

Json json_of(const Estimate& estimate) {
  return {
      {"mean", estimate.value}, {"low", estimate.interval.low}, {"high", estimate.interval.high}};
}

Json json_of(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

Json estimates_of(const RecordedEstimates& made) {
  Json estimates = {{"fitted_q", json_of(made.fitted)}};
  if (made.weighed) {
    estimates["importance_sampling"] = json_of(made.weighed->plain);
    estimates["self_normalised"] = json_of(made.weighed->self_normalised);
    estimates["doubly_robust"] = json_of(made.weighed->doubly_robust);
    estimates["self_normalised_doubly_robust"] =
        json_of(made.weighed->self_normalised_doubly_robust);
  }
  return estimates;
}

} // namespace

void evaluate_on_recording(const Experiment& experiment, const CheckpointFolder& checkpoint,
                           RecordedEvaluation options, bool json) {
  actors::RunConfig config = plan_run(experiment);
  const replay::Recording recording(options.recording);
  config.environment.frame_stack = 1; // as recorded; the policy sees the frames stacked
  const env::EnvironmentSpec spec = env::make_environment(config.environment)->spec();
  options.fit.discount = options.discount > 0 ? options.discount : config.replay.discount;
  options.fit.time_limit = spec.episode_steps;
  auto transitions = learner::transition_spec(spec, 1, options.fit.discount);
  transitions.stack = experiment.environment().frame_stack();
  check_recorded_in(recording.spec(), experiment, config.environment, transitions,
                    options.recording);
  std::vector<replay::Episode> episodes;
  for (std::size_t i = 0; i < recording.episodes().size(); ++i)
    episodes.push_back(recording.read(i));
  const learner::RecordedSteps steps(std::move(episodes), transitions);
  const auto stored = learner::stored_by(*config.agent, transitions);
  auto policy = config.agent->make_policy(stored);
  policy->load(policy_parameters(config, stored, checkpoint.path));
  if (!options.explore)
    policy = std::make_unique<learner::BestActions>(std::move(policy), transitions);
  const auto about = recording.spec().about.find("policy");
  const std::string recorded_by = about == recording.spec().about.end() ? "" : about->second;
  if (!json)
    std::printf("%s, checkpoint of %lld updates, on %lld recorded episodes (%lld steps%s%s)\n",
                experiment.environment().task().c_str(), static_cast<long long>(checkpoint.updates),
                static_cast<long long>(steps.episodes()), static_cast<long long>(steps.steps()),
                recorded_by.empty() ? "" : ", ", recorded_by.c_str());
  const auto tell = [&](int fit, double mean) {
    std::printf("fit %d of %d: %.4g\n", fit + 1, options.members, mean);
    std::fflush(stdout);
  };
  options.fit.seed = config.seed;
  std::atomic<bool> stop = false;
  const StopSignals signals(stop);
  const RecordedEstimates made = estimate_on_recording(
      learner::RecordedPolicy(steps, *policy, exploration_steps(config, checkpoint.path)),
      {.fit = options.fit, .members = options.members, .explores = options.explore},
      json ? std::function<void(int, double)>() : std::function<void(int, double)>(tell),
      [&] { return stop.load(); });
  if (json) {
    print_json({{"task", experiment.environment().task()},
                {"checkpoint", checkpoint.path.string()},
                {"updates", checkpoint.updates},
                {"recording", options.recording.string()},
                {"episodes", steps.episodes()},
                {"steps", steps.steps()},
                {"recorded_policy", recorded_by},
                {"discount", options.fit.discount},
                {"time_limit", options.fit.time_limit},
                {"estimates", estimates_of(made)},
                {"members", made.members},
                {"no_importance_sampling", made.refusal.empty() ? Json() : Json(made.refusal)},
                {"effective_episodes", json_of(made.effective_episodes)},
                {"mean_weight", made.mean_weight ? Json(made.mean_weight->mean) : Json()},
                {"recorded", json_of(made.recorded)},
                {"recorded_undiscounted", made.recorded_return},
                {"action_distance", json_of(made.coverage.distance)},
                {"choice_agreement", json_of(made.coverage.agreement)},
                {"outside", json_of(made.coverage.outside)},
                {"warnings", made.warnings}});
    return;
  }
  print_text(made, options.fit.discount);
}

} // namespace troupe::experiments::commands
