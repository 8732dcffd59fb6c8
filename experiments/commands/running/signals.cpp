#include "experiments/commands/running/signals.hpp"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <ctime>

#include "experiments/commands/commands.hpp"

namespace troupe::experiments::commands {
namespace {

constexpr long kPollNanoseconds = 100'000'000; // the destructor waits at most this long

using Clock = std::chrono::steady_clock;

void say(const char* text) {
  [[maybe_unused]] const auto count = ::write(STDERR_FILENO, text, std::strlen(text));
}

[[noreturn]] void end_at_once(const char* why) {
  say(why);
  ::_exit(kAborted);
}

void wait_for_signals(const std::stop_token& ended, std::atomic<bool>& stop, double grace_seconds) {
  const sigset_t signals = end_signals();
  bool first = true;
  auto deadline = Clock::time_point::max();
  while (!ended.stop_requested()) {
    if (Clock::now() >= deadline) {
      end_at_once("\ntroupe: stopped at the end of checkpoint.grace_seconds; the previous "
                  "checkpoint is the last one\n");
    }
    const timespec limit{0, kPollNanoseconds};
    const int signal = ::sigtimedwait(&signals, nullptr, &limit);
    if (signal < 0) {
      continue; // no signal yet
    }
    if (!first) {
      end_at_once("\ntroupe: stopped by a second signal\n");
    }
    first = false;
    stop = true;
    if (signal == SIGTERM && grace_seconds > 0) {
      deadline = Clock::now()
                 + std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double>(grace_seconds));
    }
    say("\ntroupe: stopping after a checkpoint; a second signal stops at once\n");
  }
}

} // namespace

sigset_t end_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  return signals;
}

HeldSignals::HeldSignals() {
  const sigset_t signals = end_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

HeldSignals::~HeldSignals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

StopSignals::StopSignals(std::atomic<bool>& stop, double grace_seconds)
    : waiter_([&stop, grace_seconds](const std::stop_token& ended) {
        ::pthread_setname_np(::pthread_self(), "signals");
        wait_for_signals(ended, stop, grace_seconds);
      }) {}

} // namespace troupe::experiments::commands
