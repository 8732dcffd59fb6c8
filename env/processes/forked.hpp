#pragma once
// Child processes that run a function of this program. In a process with threads, the function may
// make only async-signal-safe calls. What it throws is thrown in the child.

#include <cerrno>
#include <csignal>
#include <stdexcept>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe {

/// Runs `body` in a child process, which gets `end_signal` when the calling thread ends. If
/// `body` returns, the child ends with exit code 1. Returns what fork() returns to the parent.
template <class Body>
pid_t start_child(int end_signal, const Body& body) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, end_signal);
    if (::getppid() == parent) // else the parent ended before prctl()
      body();
    ::_exit(1);
  }
  return child;
}

/// Returns a pidfd of the child: readable once the child has ended. If the system has none,
/// kills the child and throws std::runtime_error.
inline int watch_child(pid_t child) {
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  if (descriptor < 0) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    throw std::runtime_error("cannot watch a process: pidfd_open needs Linux 5.3");
  }
  return descriptor;
}

/// Runs `body` in a child process, which ends with the exit code that `body` returns. Waits for it
/// and returns the status from waitpid(); -1, which is neither an exit nor a signal, if there is no
/// child.
template <class Body>
int status_of_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(body());
  int status = -1;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

} // namespace troupe
