#pragma once

#include <pybind11/pybind11.h>

namespace troupe::python {

/// While this lives, other Python threads run. A thread that wants the interpreter's lock back
/// after the interpreter has ended would end the process, so from the exit handlers on the lock is
/// kept.
class ReleasedLock {
public:
  ReleasedLock();
  ~ReleasedLock();
  ReleasedLock(const ReleasedLock&) = delete;
  ReleasedLock& operator=(const ReleasedLock&) = delete;

  static bool exit_begun();
  /// Registers the exit handler, which waits for calls on other threads, 10 s at most.
  static void watch_exit();

private:
  PyThreadState* state_ = nullptr;
};

} // namespace troupe::python
