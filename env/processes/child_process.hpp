#pragma once
// A child process whose output lines can be read and which can be killed or frozen. For tests and
// benchmarks that inject faults.

#include <array>
#include <csignal>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/processes/start_program.hpp"

namespace troupe {

/// The destructor kills the process (SIGKILL).
class ChildProcess {
public:
  /// Throws std::runtime_error if the process cannot be started.
  ChildProcess(std::string path, std::vector<std::string> words) {
    std::array<int, 2> ends{-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw std::runtime_error("no pipe to " + path);
    words.insert(words.begin(), path);
    id_ = start_program(words, {}, {.output = ends[1]});
    ::close(ends[1]);
    out_ = ends[0];
    if (id_ < 0)
      throw std::runtime_error("cannot start " + path);
  }
  ChildProcess(ChildProcess&& other) noexcept
      : id_(std::exchange(other.id_, -1)), out_(std::exchange(other.out_, -1)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess() {
    kill();
    if (out_ >= 0)
      ::close(out_);
  }

  void signal(int number) const {
    if (id_ > 0)
      ::kill(id_, number);
  }
  void kill() {
    signal(SIGKILL);
    exit_status();
  }
  /// Waits until the process ends and returns the status from waitpid(); later calls return 0.
  int exit_status() {
    int status = 0;
    if (id_ > 0)
      ::waitpid(std::exchange(id_, -1), &status, 0);
    return status;
  }

  /// The next line of its standard output, "" at the end. Throws if no line arrives within a
  /// minute.
  std::string line() const {
    std::string text;
    for (char c = 0;; text += c) {
      pollfd entry{out_, POLLIN, 0};
      if (::poll(&entry, 1, 60'000) <= 0)
        throw std::runtime_error("the child process has written nothing for a minute");
      if (::read(out_, &c, 1) != 1 || c == '\n')
        return text;
    }
  }

private:
  pid_t id_ = -1;
  int out_ = -1;
};

} // namespace troupe
