#include "learner/acting/best_actions.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace troupe::learner {

BestActions::BestActions(std::unique_ptr<Policy> policy, const replay::TransitionSpec& transitions)
    : policy_(std::move(policy)),
      choices_(!transitions.action_choices.empty()
               && std::ranges::all_of(transitions.action_choices,
                                      [](std::int64_t n) { return n > 0; })) {}

void BestActions::log_probability(const Observations& observations, const Exploration& exploration,
                                  std::span<const float> actions, std::span<double> out) {
  if (!has_density())
    return Policy::log_probability(observations, exploration, actions, out);
  std::vector<float> best(actions.size());
  act(observations, best);
  const std::size_t size = actions.size() / out.size();
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] =
        std::ranges::equal(actions.subspan(i * size, size), std::span(best).subspan(i * size, size))
            ? 0
            : -std::numeric_limits<double>::infinity();
}

} // namespace troupe::learner
