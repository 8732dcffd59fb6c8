#include "experiments/commands/signals.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "experiments/commands/commands.hpp"

namespace troupe::experiments::commands {
namespace {

constexpr long kPollNanoseconds = 100'000'000; // how soon the owner may end

void wait_for_signals(const std::stop_token& ended, std::atomic<bool>& stop, sigset_t signals) {
  bool first = true;
  while (!ended.stop_requested()) {
    const timespec limit{0, kPollNanoseconds};
    if (::sigtimedwait(&signals, nullptr, &limit) < 0) {
      continue; // nothing yet
    }
    if (!first) {
      static constexpr char kText[] = "\ntroupe: stopped by a second signal\n";
      [[maybe_unused]] const auto count = ::write(STDERR_FILENO, kText, sizeof kText - 1);
      ::_exit(kAborted);
    }
    first = false;
    stop = true;
    static constexpr char kText[] =
        "\ntroupe: stopping after a checkpoint; a second signal stops at once\n";
    [[maybe_unused]] const auto count = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  }
}

} // namespace

HeldSignals::HeldSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

HeldSignals::~HeldSignals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

StopSignals::StopSignals(std::atomic<bool>& stop) {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
  waiter_ = std::jthread([&stop, signals](const std::stop_token& ended) {
    ::pthread_setname_np(::pthread_self(), "signals");
    wait_for_signals(ended, stop, signals);
  });
}

StopSignals::~StopSignals() {
  waiter_.request_stop();
  waiter_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

} // namespace troupe::experiments::commands
