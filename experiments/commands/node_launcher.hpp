#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>

#include <condition_variable>
#include <queue>
#include <thread>

namespace troupe::experiments::commands {

/// Starts `troupe node …` processes for the roles of a run. They die with this process, however it
/// ends: the kernel kills a child when the thread that forked it ends, and that thread lives as
/// long as this object. SIGINT and SIGTERM are left to the head, which stops its nodes in order.
/// Any thread.
class NodeLauncher {
public:
  explicit NodeLauncher(std::filesystem::path config_file);
  ~NodeLauncher();
  NodeLauncher(const NodeLauncher&) = delete;
  NodeLauncher& operator=(const NodeLauncher&) = delete;

  /// Returns the process id; whoever called waits for it. Throws std::runtime_error.
  int start(const std::string& role, int index, std::uint16_t head_port);

private:
  void work(const std::stop_token& ended);
  std::filesystem::path config_file_;
  std::mutex mutex_;
  std::condition_variable_any ready_;
  std::queue<std::function<void()>> requests_; // at most one per calling thread
  std::jthread thread_;
};

} // namespace troupe::experiments::commands
