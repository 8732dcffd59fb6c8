#pragma once

#include <chrono>
#include <memory>

#include "learner/parameter_server/parameter_link.hpp"

namespace troupe::learner {

/// Parameter servers for threads of a process, one for each optimizer, made when its first worker
/// comes. Nothing is copied but gradients in and parameters out. Any thread; the workers' timeouts
/// do not count here, for a thread that ends says so.
class LocalParameterServer {
public:
  /// `timeout`: of every wait for other workers. Throws std::invalid_argument as check().
  explicit LocalParameterServer(const ParameterServerOptions& options,
                                std::chrono::milliseconds timeout = std::chrono::minutes(1),
                                OptimizerMaker maker = make_optimizer);
  ~LocalParameterServer();
  LocalParameterServer(const LocalParameterServer&) = delete;
  LocalParameterServer& operator=(const LocalParameterServer&) = delete;

  /// The link of `worker` for its wrapped optimizer `optimizer`, counted from 0. Must not outlive
  /// this. Throws std::invalid_argument for a worker out of range.
  std::unique_ptr<ParameterLink> link(int worker, int optimizer);

  /// Zeros where no worker of that optimizer has come.
  ParameterServerCounters counters(int optimizer = 0) const;
  std::int64_t version(int optimizer = 0) const;
  /// Of ParameterServer::snapshot(); restore() before the workers come, which are new ones.
  TensorMap snapshot(int optimizer = 0) const;
  void restore(int optimizer, const TensorMap& snapshot);

private:
  struct Served; // one server behind its lock
  struct State;
  class Link;
  std::unique_ptr<State> state_;
};

} // namespace troupe::learner
