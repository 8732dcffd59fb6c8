#include "learner/agents/parts/action_head.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <torch/types.h>

#include "learner/acting/action_density.hpp"
#include "learner/agents/parts/choices.hpp"

namespace troupe::learner {
namespace {

const double kLogRootTau = 0.5 * std::log(2 * std::numbers::pi);

at::Tensor plus(const at::Tensor& sum, const at::Tensor& more) {
  return sum.defined() ? sum + more : more;
}

/// Converts the logits of a choice to probabilities exp(logit - greatest) / sum.
struct Softmax {
  double greatest, sum = 0;
  Softmax(const float* logits, std::int64_t count)
      : greatest(*std::max_element(logits, logits + count)) {
    for (std::int64_t k = 0; k < count; ++k)
      sum += std::exp(logits[k] - greatest);
  }
  double log_probability(float logit) const { return logit - greatest - std::log(sum); }
};

} // namespace

ActionHead::ActionHead(const replay::TransitionSpec& transitions) : size_(transitions.action_size) {
  for (std::int64_t i = 0; i < size_; ++i) {
    const std::int64_t n = transitions.choices_of(static_cast<std::size_t>(i));
    const bool goes_on = n == 0 && !parts_.empty() && parts_.back().choices == 0;
    if (goes_on)
      ++parts_.back().count;
    else
      parts_.push_back({.number = i, .output = outputs_, .choices = n, .deviation = continuous_});
    outputs_ += std::max<std::int64_t>(n, 1);
    continuous_ += n == 0 ? 1 : 0;
  }
}

at::Tensor ActionHead::log_probability(const at::Tensor& outputs, const at::Tensor& deviations,
                                       const at::Tensor& action) const {
  at::Tensor sum;
  for (const Part& part : parts_) {
    const at::Tensor taken = action.narrow(1, part.number, part.count);
    if (part.choices > 0) {
      const at::Tensor logits = outputs.narrow(1, part.output, part.choices);
      sum = plus(sum, at::log_softmax(logits, 1).gather(1, taken.to(at::kLong)).squeeze(1));
      continue;
    }
    const at::Tensor mean = outputs.narrow(1, part.output, part.count);
    const at::Tensor deviation = deviations.narrow(0, part.deviation, part.count);
    sum = plus(sum,
               -(((taken - mean) / deviation.exp()).square() / 2 + deviation + kLogRootTau).sum(1));
  }
  return sum;
}

at::Tensor ActionHead::entropy(const at::Tensor& outputs, const at::Tensor& deviations) const {
  at::Tensor sum;
  for (const Part& part : parts_) {
    if (part.choices > 0) {
      const at::Tensor logarithms =
          at::log_softmax(outputs.narrow(1, part.output, part.choices), 1);
      sum = plus(sum, -(logarithms.exp() * logarithms).sum(1));
      continue;
    }
    const at::Tensor deviation = deviations.narrow(0, part.deviation, part.count);
    sum = plus(sum, (deviation + 0.5 + kLogRootTau).sum().expand({outputs.size(0)}));
  }
  return sum;
}

void ActionHead::best(const float* outputs, float* action) const {
  for (const Part& part : parts_) {
    const float* first = outputs + part.output;
    if (part.choices > 0)
      action[part.number] =
          static_cast<float>(std::max_element(first, first + part.choices) - first);
    for (std::int64_t k = 0; part.choices == 0 && k < part.count; ++k)
      action[part.number + k] = std::clamp(first[k], -1.0F, 1.0F);
  }
}

double ActionHead::sample(const float* outputs, const float* deviations, ActingRandom& random,
                          float* action) const {
  double logarithm = 0;
  for (const Part& part : parts_) {
    const float* first = outputs + part.output;
    if (part.choices > 0) {
      const Softmax softmax(first, part.choices);
      double left = random.uniform() * softmax.sum;
      std::int64_t choice = 0;
      while (choice + 1 < part.choices && (left -= std::exp(first[choice] - softmax.greatest)) >= 0)
        ++choice;
      action[part.number] = static_cast<float>(choice);
      logarithm += softmax.log_probability(first[choice]);
      continue;
    }
    for (std::int64_t k = 0; k < part.count; ++k) {
      const double deviation = deviations[part.deviation + k];
      const double drawn = random.normal();
      action[part.number + k] = static_cast<float>(first[k] + std::exp(deviation) * drawn);
      logarithm -= drawn * drawn / 2 + deviation + kLogRootTau;
    }
  }
  return logarithm;
}

double ActionHead::log_played(const float* outputs, const float* deviations,
                              const float* action) const {
  double logarithm = 0;
  for (const Part& part : parts_) {
    const float* first = outputs + part.output;
    if (part.choices > 0)
      logarithm += Softmax(first, part.choices)
                       .log_probability(first[static_cast<std::int64_t>(action[part.number])]);
    for (std::int64_t k = 0; part.choices == 0 && k < part.count; ++k)
      logarithm += log_clipped_normal(first[k], std::exp(double{deviations[part.deviation + k]}),
                                      action[part.number + k]);
  }
  return logarithm;
}

std::vector<GraphAction> ActionHead::describe() const {
  std::vector<GraphAction> made;
  for (const Part& part : parts_)
    made.push_back({.kind = part.choices > 0 ? GraphAction::Kind::choice : GraphAction::Kind::clamp,
                    .count = part.count,
                    .choices = part.choices});
  return made;
}

void ActionHead::check(const at::Tensor& action, std::int64_t update) const {
  for (const Part& part : parts_)
    if (part.choices > 0)
      check_choices(action.select(-1, part.number), part.choices, update);
}

} // namespace troupe::learner
