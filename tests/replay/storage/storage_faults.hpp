#pragma once

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/text.hpp"

namespace troupe::replay {

/// Runs `work` in a child process and returns its result or the message of what it throws (at most
/// 4 kB), or "signal N" if the process was killed.
inline std::string in_child(const std::function<std::string()>& work) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0)
    return "cannot make a pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text;
    if (const std::string error = error_of([&] { text = work(); }); !error.empty())
      text = error;
    text.resize(std::min<std::size_t>(text.size(), 4096));
    [[maybe_unused]] const ssize_t ignored = ::write(pipe_ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(pipe_ends[1]);
  std::string text(4096, '\0');
  const ssize_t got = ::read(pipe_ends[0], text.data(), text.size());
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  ::close(pipe_ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : text;
}

enum class Ending { cannot_trace, killed, exited };

struct Traced {
  Ending ending = Ending::cannot_trace;
  int code = 0; // exit code
};

constexpr int kKill = -1;

/// Runs `work` in a child process that stops before each system call. `judge` gets the number of
/// the call and returns 0 (continue), kKill (kill -9 now) or an errno with which the call fails
/// without being made. Only works on x86-64.
inline Traced traced(const std::function<int()>& work,
                     const std::function<int(std::uint64_t call)>& judge) {
#ifdef __x86_64__
  constexpr int kNotTraced = 125;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0)
      ::_exit(kNotTraced);
    ::raise(SIGSTOP);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status))
    return {};
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  bool entering = true;
  int fail_with = 0;
  for (long signal = 0;;) {
    ::ptrace(PTRACE_SYSCALL, child, nullptr, signal);
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status))
      return {Ending::exited, WEXITSTATUS(status)};
    if (WIFSIGNALED(status))
      return {Ending::killed, 0};
    const bool at_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
    signal = at_call ? 0 : WSTOPSIG(status);
    if (!at_call)
      continue;
    user_regs_struct registers{};
    ::ptrace(PTRACE_GETREGS, child, nullptr, &registers);
    if (entering) {
      fail_with = judge(registers.orig_rax);
      if (fail_with == kKill) {
        ::kill(child, SIGKILL);
        ::waitpid(child, &status, 0);
        return {Ending::killed, 0};
      }
      if (fail_with != 0)
        registers.orig_rax = ~0ULL; // not a valid call
    } else if (fail_with != 0) {
      registers.rax = static_cast<unsigned long long>(-static_cast<long long>(fail_with));
    }
    if (fail_with != 0)
      ::ptrace(PTRACE_SETREGS, child, nullptr, &registers);
    entering = !entering;
  }
#else
  (void)work;
  (void)judge;
  return {};
#endif
}

/// Whether the system call opens, reads, writes, links or renames files.
inline bool is_of_files(std::uint64_t call) {
  constexpr long kCalls[] = {SYS_openat, SYS_pwrite64, SYS_pwritev,   SYS_write,
                             SYS_read,   SYS_pread64,  SYS_ftruncate, SYS_fsync,
                             SYS_rename, SYS_link,     SYS_linkat,    SYS_mkdir};
  return std::ranges::find(kCalls, static_cast<long>(call)) != std::ranges::end(kCalls);
}

/// The number of fsync calls of `work` between its last rename and the first removal after it.
/// Returns -1 where calls cannot be traced or nothing is removed.
inline int flushes_before_removal(const std::function<int()>& work) {
  int flushes = 0, found = -1;
  const auto run = traced(work, [&](std::uint64_t call) {
    if (call == SYS_rename || call == SYS_renameat || call == SYS_renameat2) {
      flushes = 0;
      found = -1;
    } else if (call == SYS_fsync) {
      ++flushes;
    } else if (found < 0 && (call == SYS_unlink || call == SYS_unlinkat || call == SYS_rmdir)) {
      found = flushes;
    }
    return 0;
  });
  return run.ending == Ending::exited && run.code == 0 ? found : -1;
}

} // namespace troupe::replay
