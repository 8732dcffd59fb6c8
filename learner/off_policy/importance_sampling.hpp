#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace troupe::learner {

/// A step that a behaviour policy recorded, for the evaluation of another one, the target.
struct WeighedStep {
  double reward = 0;
  double log_ratio = 0; // of the action's probabilities: log(target's / behaviour's)
  /// What a model says of the target; zeros: no model.
  double action_value = 0; // of the recorded action, Q(s, a)
  double value = 0;        // of the target's actions there, V(s), the mean of Q
  double next_value = 0;   // the environment's discount times V of the next state
};
using WeighedEpisode = std::vector<WeighedStep>; // of at least one step

/// A mean over episodes and its standard error, infinite of a single episode.
struct EstimatedReturn {
  double mean = 0;
  double error = 0;
};

/// The discounted return of the target from episodes of the behaviour. A step's weight w_t is the
/// product of the ratios up to it; r_t is the reward, and with a model V(s_0) is added to what
/// follows, and discount V(s_{t+1}) - Q(s_t, a_t) to each reward:
///   estimate = mean over episodes of sum_t discount^t w_t r_t
/// which without a model is per-decision importance sampling (Precup et al. 2000), with one doubly
/// robust (Jiang & Li 2016). Both are without bias if the behaviour may do all that the target
/// does, whatever a model says that did not learn from the same episode. Self-normalised weights
/// are divided by their mean over the episodes at the same t, ended episodes with their last one
/// (Thomas & Brunskill 2016, WDR): a bias that falls with the number of episodes for a variance
/// that is often much smaller. Immutable.
class ImportanceSampling {
public:
  /// Throws std::invalid_argument unless each of the episodes (at least one) has a step and all
  /// numbers but log_ratio, which may be -infinity, are finite.
  ImportanceSampling(std::span<const WeighedEpisode> episodes, double discount);

  std::size_t episodes() const { return firsts_.size(); }
  /// Over `drawn` episodes, which may be named several times.
  EstimatedReturn estimate(std::span<const std::size_t> drawn) const;
  EstimatedReturn self_normalised(std::span<const std::size_t> drawn) const;

  /// The mean of the weights of whole episodes: 1 but for chance, less where the target does what
  /// the behaviour never did.
  EstimatedReturn weight() const;
  /// Episodes of the target that would say as much: (sum w)^2 / sum w^2 (Kong 1992).
  double effective_episodes() const { return effective_; }

private:
  std::size_t at(std::size_t t, std::size_t episode) const { return t * firsts_.size() + episode; }

  std::vector<double> firsts_;  // [episodes] V(s_0)
  std::vector<double> sums_;    // [episodes] what estimate() is the mean of
  std::vector<double> weights_; // [episodes] of whole episodes
  std::size_t longest_ = 0;     // steps
  std::vector<double> scaled_;  // [longest, episodes] weights, in units of the greatest one
  std::vector<double> rewards_; // [longest, episodes] discount^t (r_t + …)
  double effective_ = 0;
};

/// The same steps without a model.
std::vector<WeighedEpisode> without_model(std::vector<WeighedEpisode> episodes);

} // namespace troupe::learner
