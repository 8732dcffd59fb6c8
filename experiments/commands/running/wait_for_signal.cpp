#include "experiments/commands/running/wait_for_signal.hpp"

#include <stdexcept>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace troupe::experiments::commands {

EndSignals::EndSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  descriptor_ = signalfd(-1, &set, SFD_CLOEXEC);
  if (descriptor_ < 0) {
    throw std::runtime_error("cannot open a signalfd; raise the limit of open files (ulimit -n)");
  }
}

EndSignals::~EndSignals() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  close(descriptor_);
}

void EndSignals::wait(bool input) const {
  pollfd watched[] = {{.fd = descriptor_, .events = POLLIN, .revents = 0},
                      {.fd = input ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
  for (;;) {
    if (poll(watched, 2, -1) < 0) {
      continue; // interrupted
    }
    signalfd_siginfo signal{};
    if (watched[0].revents != 0 && read(descriptor_, &signal, sizeof signal) > 0) {
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
