#pragma once

#include <pybind11/pybind11.h>

namespace troupe::python {

/// While this exists, other Python threads can run. A thread that tried to take the interpreter's
/// lock after the interpreter has ended would end the process. Therefore the lock is no longer
/// released once the exit handlers have begun.
class ReleasedLock {
public:
  ReleasedLock();
  ~ReleasedLock();
  ReleasedLock(const ReleasedLock&) = delete;
  ReleasedLock& operator=(const ReleasedLock&) = delete;

  static bool exit_begun();
  /// Registers the exit handler, which waits up to 10 s for calls on other threads.
  static void watch_exit();

private:
  PyThreadState* state_ = nullptr;
};

} // namespace troupe::python
