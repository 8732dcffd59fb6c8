#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/gym/options.hpp"

namespace troupe::env::minatar {

/// An action of the game; its value is MinAtar's number.
enum class Action : std::int32_t { none, left, up, right, down, fire };

/// One game in the table. Version 0 of its task takes all six actions, version 1 the minimal ones.
struct MinAtarGameRow {
  std::string name; // "Breakout"
  std::vector<Action> minimal_actions;
  std::unique_ptr<Environment> (*make)(const std::string& name, std::span<const Action> actions,
                                       const gym::GymOptionValues& options);
};

/// The options of every task, max_episode_steps last.
const std::vector<gym::GymOptionRule>& minatar_option_rules();

/// A spec with the time limit from the options.
EnvironmentSpec minatar_spec(const std::string& name, const gym::GymOptionValues& options,
                             std::int64_t channels, std::size_t actions);

// One file per game.
MinAtarGameRow asterix();
MinAtarGameRow breakout();
MinAtarGameRow freeway();
MinAtarGameRow seaquest();
MinAtarGameRow space_invaders();

} // namespace troupe::env::minatar
