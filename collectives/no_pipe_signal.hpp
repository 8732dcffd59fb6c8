#pragma once

#include <csignal>

namespace troupe::collectives {

/// Gloo, and the server of LibTorch's store, write to sockets without MSG_NOSIGNAL: a process whose
/// peer has just gone would be killed by SIGPIPE, without a word. Threads that are made while this
/// lives do not take that signal; they see the error instead.
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
