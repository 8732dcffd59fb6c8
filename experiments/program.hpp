#pragma once

namespace troupe::experiments {

/// Runs `troupe`. A program with its own environments linked in (env/plugin/plugin.hpp) calls it
/// first in main(), because it selects the rendering thread, and returns its result.
int run_program(int argc, char** argv);

} // namespace troupe::experiments
