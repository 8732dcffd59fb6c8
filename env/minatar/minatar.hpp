#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/gym/gym.hpp"

namespace troupe::env {

/// Makes one of MinAtar's games. `name` is the name that the package registers with Gymnasium:
/// "MinAtar/Breakout-v0" takes all six actions (0: none, 1: left, 2: up, 3: right, 4: down, 5:
/// fire), "MinAtar/Breakout-v1" only the actions that have an effect in this game, in the same
/// order. `options` have the names and meanings of MinAtar's constructor arguments, with values as
/// text (see GymOptions). The observation is one array "board", uint8 [channels, 10, 10] (MinAtar's
/// [10, 10, channels] transposed), 255 where an object is and 0 elsewhere. The last step has
/// discount 0 if the game ended, 1 at the time limit. Throws std::invalid_argument on an unknown
/// task or option (with the nearest names) or a value that breaks its rule.
std::unique_ptr<Environment> make_minatar(const std::string& name,
                                          const std::map<std::string, std::string>& options = {});

/// The names of these tasks, sorted.
std::vector<std::string> minatar_names();

/// The options of a task, max_episode_steps last. Throws std::invalid_argument with the nearest
/// names if there is no such task.
std::vector<GymOption> minatar_options(const std::string& name);

} // namespace troupe::env
