#include "env/classic/classic_task.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::env::classic {

std::vector<gym::GymOptionRule> with_time_limit(std::vector<gym::GymOptionRule> own,
                                                const char* max_episode_steps) {
  own.push_back({"max_episode_steps", gym::GymOptionKind::episode_steps, max_episode_steps,
                 "steps until an episode is truncated"});
  return own;
}

EnvironmentSpec classic_spec(const std::string& name, const gym::GymOptionValues& options,
                             std::initializer_list<std::pair<const char*, std::int64_t>> arrays,
                             const ActionSpec& action, double control_timestep_seconds) {
  EnvironmentSpec spec;
  spec.name = name;
  for (const auto& [array, elements] : arrays)
    spec.observations.push_back({array, ElementType::float64, {elements}});
  spec.action = action;
  spec.episode_steps =
      std::max<std::int64_t>(0, static_cast<std::int64_t>(options.number("max_episode_steps")));
  spec.control_timestep_seconds = control_timestep_seconds;
  return spec;
}

void write_numbers(std::span<std::byte> observation, std::initializer_list<double> numbers) {
  std::memcpy(observation.data(), numbers.begin(), numbers.size() * sizeof(double));
}

void write_one_hot(std::span<std::byte> observation, std::int64_t index) {
  constexpr double kOne = 1;
  std::memset(observation.data(), 0, observation.size()); // the bits of 0.0
  std::memcpy(observation.data() + static_cast<std::size_t>(index) * sizeof(double), &kOne,
              sizeof(double));
}

std::int64_t draw_below(std::int64_t n, Random& random) {
  return static_cast<std::int64_t>(random.uniform() * static_cast<double>(n));
}

} // namespace troupe::env::classic
