#pragma once

#include <signal.h>

namespace troupe::experiments::commands {

/// From here on SIGINT and SIGTERM wait to be asked for; made before other threads, which inherit
/// it. When it is gone they are as before, so that a second one ends the program at once. Throws
/// std::runtime_error.
class EndSignals {
public:
  EndSignals();
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  /// Returns at a signal, or when standard input ends and `input` says that it matters.
  void wait(bool input) const;

  /// Waits so long: true for a signal, and where `key` is one of standard input, which is a
  /// terminal then.
  bool wait_for(int milliseconds, char key = '\0') const;

private:
  sigset_t before_{};
  int descriptor_ = -1;
};

} // namespace troupe::experiments::commands
