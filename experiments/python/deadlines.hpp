#pragma once

#include <chrono>

#include "replay/table/wait_options.hpp"

namespace troupe::python {

using Clock = std::chrono::steady_clock;

constexpr double kMostSeconds = 1e9; // about 31 years; a clock overflows after a few centuries

/// Throws std::invalid_argument on negative numbers and NaN.
replay::Deadline deadline_in(double seconds);

/// The time until which to wait before the next check for interrupts, at most `end`. The last
/// interval is long enough to detect a silent server.
replay::Deadline next_look(replay::Deadline end);

/// Checks for interrupts. Call it with the interpreter's lock. Throws Python's KeyboardInterrupt,
/// or whatever a signal handler raised.
void look_for_interrupts();

} // namespace troupe::python
