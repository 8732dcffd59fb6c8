#include "experiments/python/deadlines.hpp"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace troupe::python {
namespace {

constexpr std::chrono::milliseconds kLook{500}; // between checks for interrupts; more than two
                                                // pings

} // namespace

replay::Deadline deadline_in(double seconds) {
  if (!(seconds >= 0))
    throw std::invalid_argument("deadline is " + std::to_string(seconds)
                                + " but must be 0 or more seconds");
  return Clock::now()
         + std::chrono::duration_cast<Clock::duration>(
             std::chrono::duration<double>(std::min(seconds, kMostSeconds)));
}

replay::Deadline next_look(replay::Deadline end) {
  const replay::Deadline now = Clock::now();
  return end - now < 2 * kLook ? end : now + kLook;
}

void look_for_interrupts() {
  if (PyErr_CheckSignals() != 0)
    throw pybind11::error_already_set();
}

} // namespace troupe::python
