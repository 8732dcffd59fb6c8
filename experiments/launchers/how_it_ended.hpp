#pragma once

#include <signal.h>

#include <string>

namespace troupe::experiments {

/// Describes how a process ended: "ended with exit code 1", "was killed by signal 9 (Killed)".
std::string how_it_ended(const siginfo_t& about);

} // namespace troupe::experiments
