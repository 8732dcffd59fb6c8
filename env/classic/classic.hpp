#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/gym/gym.hpp"

namespace troupe::env {

/// One of Gymnasium's classic control or toy text tasks, "CartPole-v1" and so on, without MuJoCo.
/// `options` have the names and meaning of Gymnasium's constructors, values as text (see
/// GymOptions). Observations are float64 arrays by name; FlatState makes them Gymnasium's float32
/// vector. A task whose state Gymnasium gives as a number has one array "state", 1 at that number
/// and 0 elsewhere. The last step has discount 0 when the task terminates, 1 at the time limit.
/// Throws std::invalid_argument (unknown task or option with the nearest names, a value that
/// breaks its rule).
std::unique_ptr<Environment> make_classic(const std::string& name,
                                          const std::map<std::string, std::string>& options = {});

/// Names of these tasks, sorted.
std::vector<std::string> classic_names();

/// Options of a task; max_episode_steps last. Throws std::invalid_argument with the nearest names
/// when there is no such task.
std::vector<GymOption> classic_options(const std::string& name);

} // namespace troupe::env
