#pragma once

#include <string>
#include <vector>

#include "env/make/make.hpp"

namespace troupe::env {

/// What `troupe list environments` prints about one environment without wrappers.
struct Description {
  std::string name;
  std::vector<std::string>
      tags;             // dm_control's; "classic", "goals" or "minatar" for a task of that room
  EnvironmentSpec spec; // arrays with shapes, action bounds, control step, episode length
  std::string problem;  // why there is no spec (a missing model, a required option), or ""
};

/// Compiles the model and reads the spec without beginning an episode or drawing anything. Throws
/// std::invalid_argument if there is no such environment.
Description describe_environment(const std::string& name, const std::string& models = {});

/// Describes all of environment_names(); a model that several tasks share is compiled once.
std::vector<Description> describe_environments(const std::string& models = {});

} // namespace troupe::env
