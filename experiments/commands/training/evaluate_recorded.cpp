#include "experiments/commands/training/evaluate_recorded.hpp"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "actors/roles/checkpoint.hpp"
#include "env/make/make.hpp"
#include "env/random.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/running/evaluate_run.hpp"
#include "experiments/commands/running/signals.hpp"
#include "experiments/config/plan.hpp"
#include "experiments/statistics/statistics.hpp"
#include "learner/acting/collector.hpp"
#include "learner/acting/transition_spec.hpp"
#include "learner/off_policy/action_coverage.hpp"
#include "learner/replicas/replica_threads.hpp"
#include "replay/recordings/recording.hpp"

namespace troupe::experiments::commands {
namespace {

constexpr int kRepetitions = 2000;      // of the bootstrap
constexpr double kMostOutside = 0.25;   // of states, before the estimate is called a guess
constexpr std::uint64_t kSeedOfFit = 7; // in the paths of split_seed()

/// A number with its 95 % interval.
struct Estimate {
  double mean = 0;
  Interval interval;
};

struct Estimated {
  Estimate policy;             // discounted
  std::vector<double> members; // mean of each
  Estimate recorded;           // discounted as well
  double recorded_return = 0;  // undiscounted
  double discount = 0;
  learner::ActionCoverage coverage;
  std::vector<std::string> warnings;
};

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> counting(std::size_t count) {
  std::vector<double> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0.0);
  return numbers;
}

/// One of the members that is drawn, over episodes that are drawn again.
Interval drawn_member(const std::vector<std::vector<double>>& values, std::uint64_t seed) {
  const auto mean = [&](const Scores& members, const Scores& episodes) {
    const auto& member = values[static_cast<std::size_t>(members[0][0])];
    double sum = 0;
    for (const double episode : episodes[0])
      sum += member[static_cast<std::size_t>(episode)];
    return sum / static_cast<double>(episodes[0].size());
  };
  return bootstrap({counting(values.size())}, {counting(values[0].size())}, mean, kRepetitions,
                   seed);
}

/// Throws std::invalid_argument naming what differs.
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
    refuse("environment.action_repeat is " + ours + ", in the recording " + repeat->second);
  const env::ActionSpec action = env::make_bare(config)->spec().action;
  for (std::size_t i = 0; i < spec.action_minimum.size(); ++i)
    if (transitions.choices_of(i) == 0
        && (std::abs(spec.action_minimum[i] - action.minimum[i]) > 1e-6
            || std::abs(spec.action_maximum[i] - action.maximum[i]) > 1e-6))
      refuse("action " + std::to_string(i) + " is within " + std::to_string(action.minimum[i])
             + " and " + std::to_string(action.maximum[i]) + ", in the recording within "
             + std::to_string(spec.action_minimum[i]) + " and "
             + std::to_string(spec.action_maximum[i]));
}

std::vector<std::int64_t> drawn_again(std::int64_t episodes, std::uint64_t seed) {
  env::Random random(seed);
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(episodes));
  for (std::int64_t& episode : drawn)
    episode = static_cast<std::int64_t>(random.bits() % static_cast<std::uint64_t>(episodes));
  return drawn;
}

Estimated estimate(const learner::RecordedSteps& steps, learner::Policy& policy,
                   std::int64_t trained, const RecordedEvaluation& options, std::uint64_t seed,
                   const std::function<void(int, double)>& told) {
  std::atomic<bool> stop = false;
  const StopSignals signals(stop);
  Estimated made;
  made.discount = options.fit.discount;
  std::vector<std::vector<double>> values;
  for (int member = 0; member < options.members; ++member) {
    learner::FittedEvaluation fit = options.fit;
    fit.seed = learner::split_seed(seed, {kSeedOfFit, static_cast<std::uint64_t>(member)});
    learner::ActingRandom random{std::mt19937_64(fit.seed)};
    const auto actions = steps.actions_of(policy, options.explore ? &random : nullptr, trained);
    if (member == 0)
      made.coverage = learner::action_coverage(steps, actions, seed);
    values.push_back(learner::fitted_values(steps, actions, drawn_again(steps.episodes(), fit.seed),
                                            fit, [&] { return stop.load(); }));
    if (stop)
      throw std::runtime_error("stopped before there was an estimate");
    made.members.push_back(mean_of(values.back()));
    if (told)
      told(member + 1, made.members.back());
  }
  made.policy = {mean_of(made.members), drawn_member(values, seed)};
  const std::vector<double> recorded = steps.returns(options.fit.discount);
  made.recorded = {mean_of(recorded), bootstrap({recorded}, &mean_score, kRepetitions, seed)};
  made.recorded_return = mean_of(steps.returns(1));
  if (made.coverage.outside.value_or(0) > kMostOutside) {
    char text[300];
    std::snprintf(text, sizeof text,
                  "in %.0f %% of the recorded states the policy's action is unlike any recorded "
                  "one, so that the estimate is a guess; record with --explore or --random",
                  100 * *made.coverage.outside);
    made.warnings.emplace_back(text);
  }
  return made;
}

void print_text(const Estimated& made) {
  std::printf("estimated return %.4g (95 %%: %.4g to %.4g) by fitted Q evaluation, discount %g\n",
              made.policy.mean, made.policy.interval.low, made.policy.interval.high, made.discount);
  std::printf("recorded return  %.4g (95 %%: %.4g to %.4g); %.4g without discount\n",
              made.recorded.mean, made.recorded.interval.low, made.recorded.interval.high,
              made.recorded_return);
  if (made.coverage.distance)
    std::printf("its actions are %.2g from the recorded ones on average, of 2 at most\n",
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
      {"mean", estimate.mean}, {"low", estimate.interval.low}, {"high", estimate.interval.high}};
}

Json json_of(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

} // namespace

void evaluate_on_recording(const Experiment& experiment, const CheckpointFolder& checkpoint,
                           RecordedEvaluation options, bool json) {
  actors::RunConfig config = plan_run(experiment);
  const replay::Recording recording(options.recording);
  config.environment.frame_stack = 1; // as it is recorded; the policy sees frames stacked
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
  const auto policy = config.agent->make_policy(stored);
  policy->load(policy_parameters(config, stored, checkpoint.path));
  const std::int64_t trained = actors::read_manifest(checkpoint.path).state().agent_steps();
  const auto about = recording.spec().about.find("policy");
  const std::string recorded_by = about == recording.spec().about.end() ? "" : about->second;
  if (!json)
    std::printf("%s, checkpoint of %lld updates, on %lld recorded episodes (%lld steps%s%s)\n",
                experiment.environment().task().c_str(), static_cast<long long>(checkpoint.updates),
                static_cast<long long>(steps.episodes()), static_cast<long long>(steps.steps()),
                recorded_by.empty() ? "" : ", ", recorded_by.c_str());
  const auto tell = [&](int fit, double mean) {
    std::printf("fit %d of %d: %.4g\n", fit, options.members, mean);
    std::fflush(stdout);
  };
  const Estimated made =
      estimate(steps, *policy, trained, options, config.seed,
               json ? std::function<void(int, double)>() : std::function<void(int, double)>(tell));
  if (json) {
    print_json({{"task", experiment.environment().task()},
                {"checkpoint", checkpoint.path.string()},
                {"updates", checkpoint.updates},
                {"recording", options.recording.string()},
                {"episodes", steps.episodes()},
                {"steps", steps.steps()},
                {"recorded_policy", recorded_by},
                {"method", "fitted Q evaluation"},
                {"discount", made.discount},
                {"time_limit", options.fit.time_limit},
                {"estimate", json_of(made.policy)},
                {"members", made.members},
                {"recorded", json_of(made.recorded)},
                {"recorded_undiscounted", made.recorded_return},
                {"action_distance", json_of(made.coverage.distance)},
                {"choice_agreement", json_of(made.coverage.agreement)},
                {"outside", json_of(made.coverage.outside)},
                {"warnings", made.warnings}});
    return;
  }
  print_text(made);
}

} // namespace troupe::experiments::commands
