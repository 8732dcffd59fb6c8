#pragma once

namespace troupe::experiments {

/// Runs `troupe` and returns the exit code for main() to return. A program with its own
/// environments linked in (env/plugin/plugin.hpp) calls it first in main(), because it selects the
/// rendering thread.
int run_program(int argc, char** argv);

} // namespace troupe::experiments
