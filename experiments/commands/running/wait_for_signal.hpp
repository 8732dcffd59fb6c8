#pragma once

#include <signal.h>

namespace troupe::experiments::commands {

/// Blocks SIGINT and SIGTERM so that they can be waited for. Create it before other threads, which
/// inherit the signal mask. The destructor restores the previous mask, so that a second signal ends
/// the program immediately. Throws std::runtime_error.
class EndSignals {
public:
  EndSignals();
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  /// Returns at a signal or, with `input`, when standard input ends.
  void wait(bool input) const;

  /// Waits up to `milliseconds`. Returns true for a signal and, with a `key`, when that key is
  /// pressed; standard input must be a terminal then.
  bool wait_for(int milliseconds, char key = '\0') const;

private:
  sigset_t before_{};
  int descriptor_ = -1;
};

} // namespace troupe::experiments::commands
