#pragma once

#include <csignal>

namespace troupe::collectives {

/// Blocks SIGPIPE for threads created during its lifetime. The server of LibTorch's store writes to
/// sockets without MSG_NOSIGNAL, so that signal would silently kill a process whose peer has just
/// left. With the signal blocked, the write fails with an error instead.
class NoPipeSignal {
public:
  NoPipeSignal() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  ~NoPipeSignal() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

private:
  sigset_t before_{};
};

} // namespace troupe::collectives
