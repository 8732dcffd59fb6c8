#pragma once

#include <filesystem>
#include <functional>
#include <mutex>

#include <condition_variable>
#include <queue>
#include <thread>

#include "actors/run/run.hpp"
#include "experiments/commands/running/role_output.hpp"

namespace troupe::experiments::commands {

/// Starts `troupe actor …` processes for the roles of a run. They die with this process: the kernel
/// kills a child when the thread that forked it ends, and this object owns that thread; with a
/// `keeper` they outlive it (head_watch.hpp). They ignore
/// SIGINT and SIGTERM; the head stops them in order. Their output goes to logs/<role>-<index>.log
/// beside the run's configuration. Any thread.
class ActorLauncher {
public:
  /// `config_file` is the default of orders that name none; `keys` is the deployment's folder of
  /// keys or empty; `node` is the node's name in log lines.
  explicit ActorLauncher(std::filesystem::path config_file, std::filesystem::path keys = {},
                         std::string node = "head", int keeper = 0);
  ~ActorLauncher();
  ActorLauncher(const ActorLauncher&) = delete;
  ActorLauncher& operator=(const ActorLauncher&) = delete;

  /// Returns the process id; whoever called waits for it. Throws std::runtime_error.
  int start(const actors::ProcessOrder& order);

private:
  void work(const std::stop_token& ended);
  std::filesystem::path config_file_;
  std::filesystem::path keys_;
  int keeper_; // 0: none
  RoleOutput output_;
  std::mutex mutex_;
  std::condition_variable_any ready_;
  std::queue<std::function<void()>> requests_; // at most one per calling thread
  std::jthread thread_;
};

} // namespace troupe::experiments::commands
