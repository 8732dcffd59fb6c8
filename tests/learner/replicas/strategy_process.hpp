#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "env/processes/child_process.hpp"
#include "tests/folders.hpp"

namespace troupe::learner {

/// A strategy_process that is killed with SIGKILL at the latest when this object is destroyed. A
/// thread reads its output lines.
class StrategyProcess {
public:
  using Clock = std::chrono::steady_clock;

  explicit StrategyProcess(std::vector<std::string> arguments)
      : process_(in_build("tests/learner/strategy_process"), std::move(arguments)),
        reader_([this] { read(); }) {}
  ~StrategyProcess() { signal(SIGKILL); }
  StrategyProcess(const StrategyProcess&) = delete;
  StrategyProcess& operator=(const StrategyProcess&) = delete;

  void signal(int number) {
    process_.signal(number);
    if (number == SIGKILL)
      process_.exit_status();
  }

  std::size_t lines() const {
    const std::scoped_lock lock(mutex_);
    return count_;
  }
  std::string last() const {
    const std::scoped_lock lock(mutex_);
    return last_;
  }
  /// Waits until it has printed `count` lines in total. Returns false if it ends first or does not
  /// do so in time.
  bool wait_for(std::size_t count, std::chrono::seconds timeout = std::chrono::seconds(30)) const {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return count_ >= count || ended_; });
    return count_ >= count;
  }
  /// Waits until it ends by itself.
  bool wait_end(std::chrono::seconds timeout = std::chrono::seconds(30)) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, timeout, [&] { return ended_; });
  }

private:
  void read() {
    try {
      for (auto text = process_.line(); !text.empty(); text = process_.line()) {
        const std::scoped_lock lock(mutex_);
        last_ = std::move(text);
        ++count_;
        changed_.notify_all();
      }
    } catch (const std::runtime_error&) { // silent for a minute, which counts as an end
    }
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  ChildProcess process_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::size_t count_ = 0;
  std::string last_;
  bool ended_ = false;
  std::jthread reader_; // destroyed first; ends with the process
};

} // namespace troupe::learner
