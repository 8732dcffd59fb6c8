#pragma once

namespace troupe::experiments {

/// The whole of `troupe`: a program of one's own that has environments linked in
/// (env/plugin/plugin.hpp) calls it from main() and returns what it returns. First thing in main():
/// it decides which thread draws.
int run_program(int argc, char** argv);

} // namespace troupe::experiments
