#pragma once

#include <CLI/App.hpp>

#include <string>

namespace troupe::experiments::commands {

/// What is wrong with a command line that `app` did not parse, and which `--help` shows it right.
/// An unknown command or option is named with the nearest one.
std::string mistake_text(const CLI::App& app, const CLI::ParseError& mistake);

} // namespace troupe::experiments::commands
