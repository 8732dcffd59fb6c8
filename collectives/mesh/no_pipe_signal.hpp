#pragma once

#include <csignal>

namespace troupe::collectives {

/// The server of LibTorch's store writes to sockets without MSG_NOSIGNAL: SIGPIPE would silently
/// kill a process whose peer has just left. Threads made while this object exists block
/// that signal and see the error instead.
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
