#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <condition_variable>
#include <queue>
#include <thread>

#include "actors/run/run.hpp"
#include "experiments/commands/running/role_output.hpp"

namespace troupe::experiments::commands {

/// The environment of a process that may use these GPUs of its node, numbered from 0 among the
/// visible ones (resources_of_host()); `inherited` is the node's environment. The numbers become
/// the words of the node's own CUDA_VISIBLE_DEVICES if it has one. Throws std::invalid_argument if
/// that has too few words.
std::vector<std::string> role_variables(const std::vector<int>& gpus, const char* const* inherited);

/// Starts `troupe actor …` processes for the roles of a run. The processes die with this one: the
/// kernel kills a child when the thread that forked it ends, and this object owns that thread. With
/// a `keeper` they outlive this process (head_watch.hpp). They ignore SIGINT and SIGTERM; the head
/// stops them in order. Their output goes to logs/<role>-<index>.log next to the run's
/// configuration. May be called from any thread.
class ActorLauncher {
public:
  /// `config_file` is used for orders that name no configuration file. `keys` is the folder of the
  /// cluster keys, or empty. `node` is the node's name in log lines. `keeper` is the process that
  /// the children depend on in place of this one; 0 for none.
  explicit ActorLauncher(std::filesystem::path config_file, std::filesystem::path keys = {},
                         std::string node = "head", int keeper = 0);
  ~ActorLauncher();
  ActorLauncher(const ActorLauncher&) = delete;
  ActorLauncher& operator=(const ActorLauncher&) = delete;

  /// Returns the process id; the caller must wait for the process. Throws std::runtime_error.
  int start(const actors::ProcessOrder& order);

private:
  void work(const std::stop_token& ended);
  std::filesystem::path config_file_;
  std::filesystem::path keys_;
  int keeper_; // 0: none
  RoleOutput output_;
  std::mutex mutex_;
  std::condition_variable_any ready_;
  std::queue<std::function<void()>> requests_; // at most one for each calling thread
  std::jthread thread_;
};

} // namespace troupe::experiments::commands
