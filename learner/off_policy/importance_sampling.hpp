#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace troupe::learner {

/// A step recorded by one policy, the behaviour policy, to evaluate another policy, the target.
struct WeighedStep {
  double reward = 0;
  double log_ratio = 0; // log(target probability of the action / behaviour probability)
  /// A model's estimates for the target policy; zeros: no model.
  double action_value = 0; // Q(s, a) of the recorded action
  double value = 0;        // V(s): the mean of Q over the target's actions
  double next_value = 0;   // the environment's discount times V(s') of the next state
};
using WeighedEpisode = std::vector<WeighedStep>; // at least one step

/// A mean over episodes and its standard error, which is infinite for a single episode.
struct EstimatedReturn {
  double mean = 0;
  double error = 0;
};

/// Estimates the discounted return of the target policy from episodes of the behaviour policy:
///   estimate = mean over episodes of sum_t discount^t w_t r_t
/// The weight w_t of a step is the product of the probability ratios up to it, and r_t is the
/// reward. With a model, V(s_0) is added to each sum, and discount V(s_{t+1}) - Q(s_t, a_t) to each
/// reward. Without a model this is per-decision importance sampling (Precup et al. 2000); with a
/// model it is the doubly robust estimator (Jiang & Li 2016). Both are unbiased if the behaviour
/// policy can do everything that the target does and the model did not learn from the same episode.
/// Self-normalised weights are divided by their mean over the episodes at the same t; episodes that
/// have ended keep their last weight (Thomas & Brunskill 2016, WDR). This introduces a bias that
/// decreases with the number of episodes, and often reduces the variance considerably. Immutable.
class ImportanceSampling {
public:
  /// Throws std::invalid_argument unless there is at least one episode, each has a step, and all
  /// numbers are finite, except log_ratio, which may be -infinity.
  ImportanceSampling(std::span<const WeighedEpisode> episodes, double discount);

  std::size_t episodes() const { return firsts_.size(); }
  /// The estimates over the episodes `drawn`, which may contain an episode several times.
  EstimatedReturn estimate(std::span<const std::size_t> drawn) const;
  EstimatedReturn self_normalised(std::span<const std::size_t> drawn) const;

  /// The mean weight of whole episodes. Its expectation is 1, or less if the target does what the
  /// behaviour policy never did.
  EstimatedReturn weight() const;
  /// The number of the target's own episodes that would be as informative: (sum w)^2 / sum w^2
  /// (Kong 1992).
  double effective_episodes() const { return effective_; }

private:
  std::size_t at(std::size_t t, std::size_t episode) const { return t * firsts_.size() + episode; }

  std::vector<double> firsts_;  // [episodes] V(s_0)
  std::vector<double> sums_;    // [episodes] terms of the mean in estimate()
  std::vector<double> weights_; // [episodes] weights of whole episodes
  std::size_t longest_ = 0;     // steps of the longest episode
  std::vector<double> scaled_;  // [longest, episodes] weights / the largest of each step
  std::vector<double> rewards_; // [longest, episodes] discount^t (r_t + …)
  double effective_ = 0;
};

/// Returns the steps with the model's estimates set to 0.
std::vector<WeighedEpisode> without_model(std::vector<WeighedEpisode> episodes);

} // namespace troupe::learner
