#include "experiments/commands/running/wait_for_signal.hpp"

#include <stdexcept>

#include <poll.h>
#include <unistd.h>

namespace troupe::experiments::commands {

EndSignals::EndSignals() {
  const sigset_t signals = end_signals();
  descriptor_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor_ < 0) {
    throw std::runtime_error("cannot open a signalfd; raise the limit of open files (ulimit -n)");
  }
}

EndSignals::~EndSignals() {
  close(descriptor_);
}

std::optional<signalfd_siginfo> EndSignals::next() const {
  signalfd_siginfo signal{};
  return read(descriptor_, &signal, sizeof signal) == sizeof signal ? std::optional(signal)
                                                                    : std::nullopt;
}

void EndSignals::wait(bool input) const {
  pollfd watched[] = {{.fd = descriptor_, .events = POLLIN, .revents = 0},
                      {.fd = input ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
  for (;;) {
    if (poll(watched, 2, -1) < 0) {
      continue; // interrupted
    }
    if (watched[0].revents != 0 && next()) {
      return;
    }
    char ignored[4096];
    if (watched[1].revents != 0 && read(STDIN_FILENO, ignored, sizeof ignored) <= 0) {
      return;
    }
  }
}

bool EndSignals::wait_for(int milliseconds, char key) const {
  pollfd watched[] = {{.fd = descriptor_, .events = POLLIN, .revents = 0},
                      {.fd = key != '\0' ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
  if (poll(watched, 2, milliseconds) <= 0) {
    return false;
  }
  char typed = 0;
  return watched[0].revents != 0
         || (watched[1].revents != 0 && (read(STDIN_FILENO, &typed, 1) != 1 || typed == key));
}

} // namespace troupe::experiments::commands
