#pragma once

#include <string>

namespace troupe::experiments::commands {

/// Prints a line for every environment, or all that is known of the one called `name`. Throws
/// std::invalid_argument with the nearest names when there is none of that name.
void list_environments(const std::string& name, bool json);

} // namespace troupe::experiments::commands
