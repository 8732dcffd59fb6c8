#pragma once

#include <chrono>

#include "replay/table/wait_options.hpp"

namespace troupe::python {

using Clock = std::chrono::steady_clock;

constexpr double kMostSeconds = 1e9; // a clock cannot add more than some centuries

/// Throws std::invalid_argument on negative numbers and NaN.
replay::Deadline deadline_in(double seconds);

/// The next time to look for interrupts while waiting until `end`; the last interval is long enough
/// to detect a silent server.
replay::Deadline next_look(replay::Deadline end);

/// With the interpreter's lock. Throws Python's KeyboardInterrupt, or whatever a signal's handler
/// raised.
void look_for_interrupts();

} // namespace troupe::python
