#include "learner/agents/parts/exploration.hpp"

#include <algorithm>

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
