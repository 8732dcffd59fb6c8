#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace troupe::learner {

/// A strategy_process of its own, killed (-9) with this object at the latest; its lines are taken
/// in by a thread.
class StrategyProcess {
public:
  using Clock = std::chrono::steady_clock;

  explicit StrategyProcess(std::vector<std::string> arguments) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe(ends.data()) != 0)
      throw std::runtime_error("pipe failed");
    std::string program = TROUPE_BINARY_DIR "/tests/learner/strategy_process";
    std::vector<char*> given{program.data()};
    for (std::string& argument : arguments)
      given.push_back(argument.data());
    given.push_back(nullptr);
    id_ = ::fork();
    if (id_ == 0) { // nothing but calls that are safe beside other threads
      ::dup2(ends[1], STDOUT_FILENO);
      ::execv(given[0], given.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    reader_ = std::jthread([this, out = ends[0]] { read(out); });
  }
  ~StrategyProcess() { signal(SIGKILL); }
  StrategyProcess(const StrategyProcess&) = delete;
  StrategyProcess& operator=(const StrategyProcess&) = delete;

  void signal(int number) {
    if (id_ > 0)
      ::kill(id_, number);
    if (number != SIGKILL || id_ <= 0)
      return;
    ::waitpid(id_, nullptr, 0);
    id_ = -1;
  }

  std::size_t lines() const {
    const std::scoped_lock lock(mutex_);
    return count_;
  }
  std::string last() const {
    const std::scoped_lock lock(mutex_);
    return last_;
  }
  /// Waits until it has said `count` lines in all; false when it does not in time or ends.
  bool wait_for(std::size_t count, std::chrono::seconds timeout = std::chrono::seconds(30)) const {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return count_ >= count || ended_; });
    return count_ >= count;
  }
  /// Waits until it has ended by itself.
  bool wait_end(std::chrono::seconds timeout = std::chrono::seconds(30)) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, timeout, [&] { return ended_; });
  }

private:
  void read(int out) {
    std::string text;
    for (char c = 0; ::read(out, &c, 1) == 1;) {
      if (c != '\n') {
        text += c;
        continue;
      }
      const std::scoped_lock lock(mutex_);
      last_ = std::exchange(text, {});
      ++count_;
      changed_.notify_all();
    }
    ::close(out);
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  pid_t id_ = -1;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::size_t count_ = 0;
  std::string last_;
  bool ended_ = false;
  std::jthread reader_; // last; ends with the process
};

} // namespace troupe::learner
