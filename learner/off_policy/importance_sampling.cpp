#include "learner/off_policy/importance_sampling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace troupe::learner {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

EstimatedReturn mean_of(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values)
    sum += value;
  const double mean = sum / count;
  double squares = 0;
  for (const double value : values)
    squares += (value - mean) * (value - mean);
  return {mean, values.size() > 1 ? std::sqrt(squares / (count - 1) / count)
                                  : std::numeric_limits<double>::infinity()};
}

void check(const WeighedStep& step, std::size_t episode, std::size_t t) {
  const bool ratio = std::isfinite(step.log_ratio) || step.log_ratio == kNone;
  if (!ratio || !std::isfinite(step.reward) || !std::isfinite(step.action_value)
      || !std::isfinite(step.value) || !std::isfinite(step.next_value))
    throw std::invalid_argument("step " + std::to_string(t) + " of recorded episode "
                                + std::to_string(episode)
                                + " has a number that is not finite; record it again");
}

} // namespace

ImportanceSampling::ImportanceSampling(std::span<const WeighedEpisode> episodes, double discount)
    : firsts_(episodes.size()), sums_(episodes.size()), weights_(episodes.size()) {
  if (episodes.empty())
    throw std::invalid_argument("importance sampling needs an episode; record some");
  for (std::size_t i = 0; i < episodes.size(); ++i) {
    if (episodes[i].empty())
      throw std::invalid_argument("recorded episode " + std::to_string(i)
                                  + " has no step; record it again");
    longest_ = std::max(longest_, episodes[i].size());
  }
  scaled_.resize(longest_ * episodes.size());
  rewards_.resize(longest_ * episodes.size());
  for (std::size_t i = 0; i < episodes.size(); ++i) {
    firsts_[i] = sums_[i] = episodes[i][0].value;
    double logarithm = 0;
    double factor = 1;
    for (std::size_t t = 0; t < longest_; ++t) {
      if (t < episodes[i].size()) {
        const WeighedStep& step = episodes[i][t];
        check(step, i, t);
        logarithm += step.log_ratio;
        rewards_[at(t, i)] =
            factor * (step.reward + discount * step.next_value - step.action_value);
        if (logarithm != kNone)
          sums_[i] += std::exp(logarithm) * rewards_[at(t, i)];
        factor *= discount;
      }
      scaled_[at(t, i)] = logarithm;
    }
    weights_[i] = std::exp(logarithm);
  }
  for (std::size_t t = 0; t < longest_; ++t) {
    const auto row = std::span(scaled_).subspan(at(t, 0), episodes.size());
    const double greatest = *std::ranges::max_element(row);
    for (double& logarithm : row)
      logarithm = greatest == kNone ? 0 : std::exp(logarithm - greatest);
  }
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < episodes.size(); ++i) {
    const double weight = scaled_[at(longest_ - 1, i)];
    sum += weight;
    squares += weight * weight;
  }
  effective_ = squares > 0 ? sum * sum / squares : 0;
}

EstimatedReturn ImportanceSampling::estimate(std::span<const std::size_t> drawn) const {
  std::vector<double> values;
  values.reserve(drawn.size());
  for (const std::size_t i : drawn)
    values.push_back(sums_[i]);
  return mean_of(values);
}

/// The standard error is that of the ratio's linearisation.
EstimatedReturn ImportanceSampling::self_normalised(std::span<const std::size_t> drawn) const {
  const auto count = static_cast<double>(drawn.size());
  std::vector<double> values;
  values.reserve(drawn.size());
  for (const std::size_t i : drawn)
    values.push_back(firsts_[i]);
  double later = 0;
  for (std::size_t t = 0; t < longest_; ++t) {
    const double* weights = &scaled_[at(t, 0)];
    const double* rewards = &rewards_[at(t, 0)];
    double all = 0;
    double sum = 0;
    for (const std::size_t i : drawn) {
      all += weights[i];
      sum += weights[i] * rewards[i];
    }
    if (all == 0) // the target never does what these episodes did
      continue;
    const double mean = sum / all;
    later += mean;
    for (std::size_t k = 0; k < drawn.size(); ++k)
      values[k] += count * weights[drawn[k]] / all * (rewards[drawn[k]] - mean);
  }
  EstimatedReturn made = mean_of(values); // the linear terms sum to 0
  made.mean += later;
  return made;
}

EstimatedReturn ImportanceSampling::weight() const {
  return mean_of(weights_);
}

std::vector<WeighedEpisode> without_model(std::vector<WeighedEpisode> episodes) {
  for (WeighedEpisode& episode : episodes)
    for (WeighedStep& step : episode)
      step.action_value = step.value = step.next_value = 0;
  return episodes;
}

} // namespace troupe::learner
