#include "experiments/commands/training/recorded_estimates.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <stdexcept>

namespace troupe::experiments {
namespace {

constexpr int kRepetitions = 1000; // bootstrap repetitions
// Above this fraction of states, the fitted estimate is a guess.
constexpr double kMostOutside = 0.25;
constexpr double kLeastEffectiveEpisodes = 10; // below this, the weights say nothing
// A mean weight this many standard errors from 1 causes a warning.
constexpr double kWeightErrors = 4;
constexpr double kWeightTolerance = 0.05;

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

using Estimator =
    learner::EstimatedReturn (learner::ImportanceSampling::*)(std::span<const std::size_t>) const;

Estimate over_episodes(const learner::ImportanceSampling& sampling, Estimator estimator,
                       std::uint64_t seed) {
  const auto statistic = [&](std::span<const std::size_t> drawn) {
    const learner::EstimatedReturn made = (sampling.*estimator)(drawn);
    return WithError{made.mean, made.error};
  };
  std::vector<std::size_t> all(sampling.episodes());
  std::iota(all.begin(), all.end(), 0);
  return {statistic(all).value, studentised_bootstrap(all.size(), statistic, kRepetitions, seed)};
}

std::string text_of(const char* format, double first, double second = 0) {
  char text[400];
  std::snprintf(text, sizeof text, format, first, second);
  return text;
}

/// The reason why there are no weights; "" if there are.
std::string without_weights(const learner::RecordedPolicy& policy, bool explores) {
  if (!policy.steps().log_probability().defined())
    return "the recording has no probabilities of its actions, which `troupe record` writes with "
           "--explore and --random where the policy has them";
  if (policy.has_density())
    return "";
  return explores ? "the policy does not draw each action separately, so a single action has no "
                    "probability"
                  : "the best continuous action is deterministic and has no density; --explore "
                    "evaluates the policy as it explores";
}

void weigh(const learner::RecordedSteps& steps, const std::vector<double>& target,
           const learner::FittedValues& model, const learner::FittedEvaluation& fit,
           RecordedEstimates& made) {
  using learner::ImportanceSampling;
  const auto episodes = learner::weighed_episodes(steps, target, model);
  const ImportanceSampling robust(episodes, fit.discount);
  made.effective_episodes = robust.effective_episodes();
  made.mean_weight = robust.weight();
  if (*made.effective_episodes < kLeastEffectiveEpisodes) {
    made.refusal =
        text_of("the weights leave %.2g effective episodes, but at least %.0f are "
                "needed; record more, or record with a policy that is more like this one",
                *made.effective_episodes, kLeastEffectiveEpisodes);
    return;
  }
  const ImportanceSampling plain(learner::without_model(episodes), fit.discount);
  made.weighed = {.plain = over_episodes(plain, &ImportanceSampling::estimate, fit.seed),
                  .self_normalised =
                      over_episodes(plain, &ImportanceSampling::self_normalised, fit.seed),
                  .doubly_robust = over_episodes(robust, &ImportanceSampling::estimate, fit.seed),
                  .self_normalised_doubly_robust =
                      over_episodes(robust, &ImportanceSampling::self_normalised, fit.seed)};
  if (std::abs(made.mean_weight->mean - 1)
      > std::max(kWeightTolerance, kWeightErrors * made.mean_weight->error))
    made.warnings.push_back(
        text_of("the mean weight is %.3g +- %.2g instead of 1: the policy does what the recorded "
                "one hardly ever did, and importance sampling cannot account for that",
                made.mean_weight->mean, made.mean_weight->error));
}

/// The number of episodes that were cut off elsewhere than at the time limit.
std::int64_t cut_episodes(const learner::RecordedSteps& steps, std::int64_t time_limit) {
  std::int64_t cut = 0;
  for (std::int64_t i = 0; i < steps.episodes(); ++i) {
    const std::int64_t count = steps.last_row(i) - steps.first_row(i);
    const bool terminated = steps.discount().const_data_ptr<float>()[steps.last_row(i) - 1] == 0;
    cut += !terminated && count != time_limit ? 1 : 0;
  }
  return cut;
}

} // namespace

RecordedEstimates estimate_on_recording(const learner::RecordedPolicy& policy,
                                        const learner::FittedMembersConfig& config,
                                        const std::function<void(int, double)>& told,
                                        const std::function<bool()>& stopped) {
  const learner::RecordedSteps& steps = policy.steps();
  RecordedEstimates made;
  const std::uint64_t seed = config.fit.seed;
  made.refusal = without_weights(policy, config.explores);
  std::vector<double> target;
  if (made.refusal.empty())
    target = policy.log_probabilities();
  const auto fitted = learner::fit_members(policy, config, told, stopped);
  if (stopped())
    throw std::runtime_error("stopped before there was an estimate");
  made.members = fitted.means;
  const double mean = mean_of(fitted.means);
  made.fitted = {mean, replicate_interval(mean, fitted.replicates)};
  learner::ActingRandom random{std::mt19937_64(seed)};
  made.coverage =
      learner::action_coverage(steps, policy.actions(config.explores ? &random : nullptr), seed);
  const std::vector<double> recorded = steps.returns(config.fit.discount);
  made.recorded = {mean_of(recorded), bootstrap({recorded}, &mean_score, kRepetitions, seed)};
  made.recorded_return = mean_of(steps.returns(1));
  if (made.coverage.outside.value_or(0) > kMostOutside)
    made.warnings.push_back(
        text_of("in %.0f %% of the recorded states the policy's action is unlike any recorded one, "
                "so the fitted networks extrapolate; record with --explore or --random",
                100 * *made.coverage.outside));
  if (!target.empty())
    weigh(steps, target, fitted.unseen, config.fit, made);
  const std::int64_t cut = cut_episodes(steps, config.fit.time_limit);
  if (made.weighed && cut > 0)
    made.warnings.push_back(text_of("%.0f recorded episodes were cut, and importance sampling "
                                    "without a model ignores everything after the cut",
                                    static_cast<double>(cut)));
  return made;
}

} // namespace troupe::experiments
