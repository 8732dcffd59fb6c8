#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "env/game_environment.hpp"
#include "env/gym/options.hpp"

namespace troupe::env::classic {

/// One task in the table of classic tasks.
struct ClassicTask {
  std::string name;                        // "CartPole-v1"
  std::vector<gym::GymOptionRule> options; // including max_episode_steps
  std::unique_ptr<Environment> (*make)(const std::string& name, const gym::GymOptionValues&);
};

/// Makes the environment of a game; used as ClassicTask::make.
template <class Game>
std::unique_ptr<Environment> make_game(const std::string& name,
                                       const gym::GymOptionValues& options) {
  return std::make_unique<GameEnvironment<Game>>(Game(name, options));
}

/// Returns `own` followed by the option that every task takes, max_episode_steps.
std::vector<gym::GymOptionRule> with_time_limit(std::vector<gym::GymOptionRule> own,
                                                const char* max_episode_steps);

/// A spec with the time limit from the options. `arrays` holds names and numbers of elements.
EnvironmentSpec classic_spec(const std::string& name, const gym::GymOptionValues& options,
                             std::initializer_list<std::pair<const char*, std::int64_t>> arrays,
                             const ActionSpec& action, double control_timestep_seconds);

/// Writes `numbers` into the observation's float64 arrays, in order.
void write_numbers(std::span<std::byte> observation, std::initializer_list<double> numbers);

/// Writes 1 at `index` of a float64 array and 0 elsewhere.
void write_one_hot(std::span<std::byte> observation, std::int64_t index);

/// A uniformly random whole number from 0 to n - 1.
std::int64_t draw_below(std::int64_t n, Random& random);

// One file per game.
ClassicTask acrobot_v1();
ClassicTask cart_pole_v1();
ClassicTask frozen_lake_v1();
ClassicTask frozen_lake_8x8_v1();
ClassicTask mountain_car_v0();
ClassicTask mountain_car_continuous_v0();
ClassicTask pendulum_v1();
ClassicTask taxi_v4();

} // namespace troupe::env::classic
