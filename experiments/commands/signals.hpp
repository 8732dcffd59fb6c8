#pragma once

#include <atomic>
#include <thread>

#include <signal.h>

namespace troupe::experiments::commands {

/// While it lives, SIGINT and SIGTERM wait in this thread and those it starts: for StopSignals that
/// are made after other threads.
class HeldSignals {
public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

private:
  sigset_t before_{};
};

/// While it lives, SIGINT and SIGTERM go to one thread: the first sets `stop`, the second ends the
/// process at once with exit code 130, and so does the end of `grace_seconds` after a first SIGTERM
/// (0: it may take as long as it likes). Made before any other thread, which inherit its signal
/// mask.
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
