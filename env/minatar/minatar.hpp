#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/gym/gym.hpp"

namespace troupe::env {

/// One of MinAtar's games by the name that its package registers with Gymnasium:
/// "MinAtar/Breakout-v0" takes all six actions (0: none, 1: left, 2: up, 3: right, 4: down,
/// 5: fire), "MinAtar/Breakout-v1" those alone that do something in this game, in the same order.
/// `options` have the names and meaning of MinAtar's constructor, values as text (see GymOptions).
/// The observation is one array "board", uint8 [channels, 10, 10] (MinAtar's [10, 10, channels]
/// transposed), 255 where something is and 0 elsewhere. The last step has discount 0 when the game
/// ends, 1 at the time limit. Throws std::invalid_argument (unknown task or option with the nearest
/// names, a value that breaks its rule).
std::unique_ptr<Environment> make_minatar(const std::string& name,
                                          const std::map<std::string, std::string>& options = {});

/// Names of these tasks, sorted.
std::vector<std::string> minatar_names();

/// Options of a task; max_episode_steps last. Throws std::invalid_argument with the nearest names
/// when there is no such task.
std::vector<GymOption> minatar_options(const std::string& name);

} // namespace troupe::env
