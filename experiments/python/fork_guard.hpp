#pragma once

#include <sys/types.h>

#include <string>

namespace troupe::python {

/// Detects whether this process was forked after the guard was made. In such a process the locks of
/// other threads are never released.
class ForkGuard {
public:
  ForkGuard();

  bool in_fork() const;
  /// Throws std::runtime_error in a forked process: "the <what> belongs to process 7 and …".
  void check(const char* what) const {
    if (in_fork())
      refuse(what);
  }

private:
  [[noreturn]] void refuse(const char* what) const;

  pid_t process_;
  unsigned forks_; // number of forks between the first process and this one
};

} // namespace troupe::python
