#pragma once

#include <array>
#include <csignal>
#include <stdexcept>
#include <string>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/processes/forked.hpp"

namespace troupe::experiments {

/// A server in a child process, which the destructor kills. Create it before any thread, unless
/// `serve` only executes a program.
class ForkedServer {
public:
  /// `serve` writes the endpoint to the descriptor that it gets, then serves until the process is
  /// killed. Throws std::runtime_error, which names `bench`, if it has not written within 20 s.
  template <class Serve>
  ForkedServer(const std::string& bench, const Serve& serve) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe(ends.data()) != 0)
      throw std::runtime_error("bench " + bench + ": no pipe to a server");
    process_ = start_child(SIGKILL, [&] {
      ::close(ends[0]);
      try {
        serve(ends[1]);
      } catch (const std::exception&) { // the parent sees the closed pipe
      }
    });
    ::close(ends[1]);
    std::array<char, 256> text{};
    constexpr int kPatienceMilliseconds = 20'000;
    pollfd written{.fd = ends[0], .events = POLLIN, .revents = 0};
    const bool some = ::poll(&written, 1, kPatienceMilliseconds) == 1;
    const auto size = some ? ::read(ends[0], text.data(), text.size() - 1) : 0;
    ::close(ends[0]);
    if (size <= 0) {
      end();
      throw std::runtime_error("bench " + bench + ": the server process did not start");
    }
    endpoint_ = text.data();
  }
  ~ForkedServer() { end(); }
  ForkedServer(const ForkedServer&) = delete;
  ForkedServer& operator=(const ForkedServer&) = delete;

  const std::string& endpoint() const { return endpoint_; }
  pid_t process() const { return process_; }

private:
  void end() const {
    if (process_ <= 0)
      return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

  pid_t process_ = -1;
  std::string endpoint_;
};

} // namespace troupe::experiments
