#pragma once

#include <string>

namespace troupe::experiments::commands {

/// Prints one line for each environment, or everything known about the environment `name`. Throws
/// std::invalid_argument with the nearest names if no environment has that name.
void list_environments(const std::string& name, bool json);

} // namespace troupe::experiments::commands
