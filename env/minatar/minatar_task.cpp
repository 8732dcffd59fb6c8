#include "env/minatar/minatar_task.hpp"

#include <algorithm>

#include "env/minatar/board.hpp"

namespace troupe::env::minatar {

const std::vector<gym::GymOptionRule>& minatar_option_rules() {
  using enum gym::GymOptionKind;
  static const std::vector<gym::GymOptionRule> rules{
      {"sticky_action_prob", probability, "0.1",
       "probability that a step repeats the last action instead of the given one"},
      {"difficulty_ramping", flag, "true",
       "whether Asterix, Seaquest and SpaceInvaders become faster during an episode"},
      {"max_episode_steps", episode_steps, "-1", "steps until an episode is truncated"}};
  return rules;
}

EnvironmentSpec minatar_spec(const std::string& name, const gym::GymOptionValues& options,
                             std::int64_t channels, std::size_t actions) {
  EnvironmentSpec spec;
  spec.name = name;
  spec.observations.push_back({"board", ElementType::uint8, {channels, kSide, kSide}});
  spec.action = one_of(static_cast<std::int64_t>(actions));
  spec.episode_steps =
      std::max<std::int64_t>(0, static_cast<std::int64_t>(options.number("max_episode_steps")));
  spec.control_timestep_seconds = 1;
  return spec;
}

} // namespace troupe::env::minatar
