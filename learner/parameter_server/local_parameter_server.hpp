#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "learner/parameter_server/parameter_link.hpp"

namespace troupe::learner {

/// Parameter servers for threads of one process. There is one server per optimizer, made when its
/// first worker connects. Only gradients are copied in and parameters out. Any thread may call it.
/// The workers' timeouts are not used, because a thread that ends leaves explicitly.
class LocalParameterServer {
public:
  /// `timeout` limits every wait for other workers. Throws std::invalid_argument like check().
  explicit LocalParameterServer(const ParameterServerOptions& options,
                                std::chrono::milliseconds timeout = std::chrono::minutes(1),
                                OptimizerMaker maker = make_optimizer);
  ~LocalParameterServer();
  LocalParameterServer(const LocalParameterServer&) = delete;
  LocalParameterServer& operator=(const LocalParameterServer&) = delete;

  /// Makes the link of `worker` for its wrapped optimizer number `optimizer`, from 0. The link must
  /// not outlive this object. Throws std::invalid_argument if the worker is out of range.
  std::unique_ptr<ParameterLink> link(int worker, int optimizer);

  /// Returns zeros if no worker of that optimizer has connected.
  ParameterServerCounters counters(int optimizer = 0) const;
  std::int64_t version(int optimizer = 0) const;
  /// As ParameterServer::snapshot() and replace().
  TensorMap snapshot(int optimizer = 0) const;
  void replace(int optimizer, const TensorMap& snapshot, std::int64_t load);

  /// Ends every wait of the workers, now and later, with std::runtime_error and this reason.
  void abort(const std::string& reason);

private:
  struct Served; // a server and its lock
  struct State;
  class Link;
  std::unique_ptr<State> state_;
};

} // namespace troupe::learner
