#pragma once

#include <poll.h>

#include <chrono>

namespace troupe::testing {

/// Returns whether `holds()` becomes true before the deadline. Use it only for state of other
/// processes that gives no signal. Wait for anything else with a latch, a condition variable or a
/// line of output.
template <class Condition>
bool comes_true(Condition holds, std::chrono::seconds deadline = std::chrono::seconds(60)) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end)
      return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

} // namespace troupe::testing
