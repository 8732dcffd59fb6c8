#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/gym/gym.hpp"

namespace troupe::env {

/// Makes one of Gymnasium's classic control or toy text tasks, e.g. "CartPole-v1", which do not
/// need MuJoCo. `options` have the names and meanings of Gymnasium's constructor arguments, with
/// values as text (see GymOptions). Observations are float64 arrays by name; FlatState turns them
/// into Gymnasium's float32 vector. A task whose state is a number in Gymnasium has one array
/// "state", 1 at that number and 0 elsewhere. The last step has discount 0 if the task terminated,
/// 1 at the time limit. Throws std::invalid_argument on an unknown task or option (with the nearest
/// names) or a value that breaks its rule.
std::unique_ptr<Environment> make_classic(const std::string& name,
                                          const std::map<std::string, std::string>& options = {});

/// The names of these tasks, sorted.
std::vector<std::string> classic_names();

/// The options of a task, max_episode_steps last. Throws std::invalid_argument with the nearest
/// names if there is no such task.
std::vector<GymOption> classic_options(const std::string& name);

} // namespace troupe::env
