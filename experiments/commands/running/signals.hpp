#pragma once

#include <atomic>
#include <thread>

#include <signal.h>

namespace troupe::experiments::commands {

/// Blocks SIGINT and SIGTERM in this thread and in the threads it starts, so that StopSignals can
/// be created after other threads.
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
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

private:
  sigset_t before_{};
  std::jthread waiter_;
};

} // namespace troupe::experiments::commands
