#pragma once

#include <CLI/App.hpp>

#include <string>

namespace troupe::experiments::commands {

/// Explains why `app` could not parse a command line and names the `--help` that describes it.
/// Suggests the nearest name for an unknown command or option.
std::string mistake_text(const CLI::App& app, const CLI::ParseError& mistake);

} // namespace troupe::experiments::commands
