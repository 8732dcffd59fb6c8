#pragma once

#include <string>
#include <vector>

#include "env/environment_config.hpp"

namespace troupe::experiments {

/// Builds an environment configuration from "key=value" assignments. The keys are those of an
/// experiment's block `environment` ("pixels.height=84"). A list is written as "1,2,3"; texts that
/// contain a comma are in double quotes. Other keys have their defaults. Throws ConfigError, whose
/// complaints name keys without the block.
env::EnvironmentConfig environment_of_keys(const std::vector<std::string>& assignments);

} // namespace troupe::experiments
