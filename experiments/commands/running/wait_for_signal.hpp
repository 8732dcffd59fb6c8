#pragma once

#include <optional>

#include <sys/signalfd.h>

#include "experiments/commands/running/signals.hpp"

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

  /// A descriptor for poll() that is readable while next() has a signal.
  int descriptor() const { return descriptor_; }
  /// Takes the next signal; nothing if there is none.
  std::optional<signalfd_siginfo> next() const;

private:
  HeldSignals held_;
  int descriptor_ = -1;
};

} // namespace troupe::experiments::commands
