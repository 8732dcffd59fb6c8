#pragma once

#include <sys/types.h>

#include <string>

namespace troupe::python {

/// Tells a process from the forks of it, in which the locks of other threads are never released.
class ForkGuard {
public:
  ForkGuard();

  bool in_fork() const;
  /// Throws std::runtime_error in a fork: "the <what> belongs to process 7 and …".
  void check(const char* what) const {
    if (in_fork())
      refuse(what);
  }

private:
  [[noreturn]] void refuse(const char* what) const;

  pid_t process_;
  unsigned forks_; // of this process's ancestors
};

} // namespace troupe::python
