#pragma once

#include <CLI/FormatterFwd.hpp>

#include <memory>

namespace troupe::experiments::commands {

/// Formats the help of every command. An option is shown with the kind of its value (TEXT, NUMBER
/// or the choices) instead of CLI11's type. Range, default, environment variable and the options
/// that it needs or excludes follow its description in parentheses.
std::shared_ptr<CLI::FormatterBase> help_format();

} // namespace troupe::experiments::commands
