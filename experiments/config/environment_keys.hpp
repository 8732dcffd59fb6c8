#pragma once

#include <string>
#include <vector>

#include "env/environment_config.hpp"

namespace troupe::experiments {

/// The environment of "key=value" assignments, whose keys are those of an experiment's block
/// `environment` ("pixels.height=84"; a list as "1,2,3", its texts in double quotes where they
/// contain a comma). Other keys have their defaults. Throws ConfigError; its complaints name keys
/// without the block.
env::EnvironmentConfig environment_of_keys(const std::vector<std::string>& assignments);

} // namespace troupe::experiments
