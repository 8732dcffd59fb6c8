#pragma once

#include <string>
#include <vector>

#include "env/make/make.hpp"

namespace troupe::env {

/// What `troupe list environments` says of one environment without its wrappers.
struct Description {
  std::string name;
  std::vector<std::string>
      tags;             // dm_control's; "classic", "goals" or "minatar" for a task of that room
  EnvironmentSpec spec; // arrays with shapes, action bounds, control step, episode length
  std::string problem;  // why there is no spec: a missing model, an option it needs; or ""
};

/// Compiles the model and reads the spec; no episode is begun and nothing drawn. Throws
/// std::invalid_argument when there is no such environment.
Description describe_environment(const std::string& name, const std::string& models = {});

/// All of environment_names(); a model that several tasks share is compiled once.
std::vector<Description> describe_environments(const std::string& models = {});

} // namespace troupe::env
