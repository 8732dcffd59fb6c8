#pragma once

#include <atomic>
#include <thread>

#include <signal.h>

namespace troupe::experiments::commands {

/// SIGINT and SIGTERM, which end a command.
sigset_t end_signals();

/// Blocks end_signals() in this thread and in the threads it starts, so that StopSignals can
/// be created after other threads. The destructor restores the previous mask.
class HeldSignals {
public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

private:
  sigset_t before_{};
};

/// Handles SIGINT and SIGTERM on a thread of its own. The first signal sets `stop`. A second
/// signal, or `grace_seconds` after a first SIGTERM (0: no limit), ends the process immediately
/// with exit code 130. Create it before any other thread, because threads inherit its signal mask.
class StopSignals {
public:
  explicit StopSignals(std::atomic<bool>& stop, double grace_seconds = 0);

private:
  HeldSignals held_;
  std::jthread waiter_;
};

} // namespace troupe::experiments::commands
