#include "learner/agents/parts/exploration.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::learner {

double Schedule::at(std::int64_t step) const {
  const double done = static_cast<double>(step) / static_cast<double>(steps);
  return start + std::clamp(done, 0.0, 1.0) * (end - start);
}

void NoiseConfig::add_members(Members& members) {
  members.push_back({"noise_start", &start});
  members.push_back({"noise_end", &end});
  members.push_back({"noise_steps", &steps});
}

std::vector<OptionProblem> NoiseConfig::problems(const std::string& agent) const {
  if (end <= start)
    return {};
  return {{"noise_end", "is " + number_text(end) + "; it must be at most " + agent
                            + ".noise_start, " + number_text(start) + ": noise falls"}};
}

void EpsilonConfig::add_members(Members& members) {
  members.insert(members.end(), {{"epsilon_start", &probability.start},
                                 {"epsilon_end", &probability.end},
                                 {"epsilon_steps", &probability.steps},
                                 {"epsilon_ladder", &ladder}});
}

double EpsilonConfig::at(const Exploration& exploration, std::size_t row) const {
  const double now = probability.at(exploration.steps);
  const auto others = static_cast<double>(exploration.total_lanes - 1);
  if (ladder == 0 || others < 1)
    return now;
  const double lane = static_cast<double>(exploration.first_lane) + static_cast<double>(row);
  return std::pow(now, 1 + ladder * lane / others);
}

void EpsilonConfig::apply(const Exploration& exploration, std::int64_t choices,
                          std::span<float> actions) const {
  for (std::size_t i = 0; i < actions.size(); ++i)
    if (ActingRandom& random = *exploration.random[i]; random.uniform() < at(exploration, i))
      actions[i] = static_cast<float>(std::floor(random.uniform() * static_cast<double>(choices)));
}

void add_noise(const Schedule& deviation, const Exploration& exploration,
               std::span<float> actions) {
  const double noise = deviation.at(exploration.steps);
  if (noise <= 0)
    return;
  const std::size_t size = actions.size() / exploration.random.size();
  for (std::size_t i = 0; i < actions.size(); ++i)
    actions[i] = static_cast<float>(
        std::clamp(actions[i] + noise * exploration.random[i / size]->normal(), -1.0, 1.0));
}

} // namespace troupe::learner
