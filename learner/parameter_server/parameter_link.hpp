#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "learner/parameter_server/parameter_server.hpp"

namespace troupe::learner {

/// The result of one exchange, over all servers.
struct ExchangeReport {
  std::int64_t version = 0;   // of the parameters received; the minimum over the servers
  std::int64_t staleness = 0; // of the gradient; the maximum over the servers
  int dropped = 0;            // number of servers that did not use the gradient
  double rate_scale = 1;      // smallest factor that a server applied to the learning rates
  int rewound = 0;            // number of servers that restarted from older parameters
  double waited_seconds = 0;  // total, from the push to the parameters' arrival
};

/// Connects a worker to the servers of one optimizer, in its process (LocalParameterServer) or over
/// the wire (ParameterServerClient). One thread only. Failures throw std::runtime_error naming the
/// server and the reason; every wait has a deadline.
class ParameterLink {
public:
  virtual ~ParameterLink() = default;

  virtual int servers() const = 0;
  /// Version of the parameters last received; the minimum over the servers.
  virtual std::int64_t version() const = 0;

  /// Called once. Sets all workers' parameters to worker 0's; `parameters` holds them afterwards.
  /// `recipe`, `plan` (with as many shards as servers) and `type` must be the same on all workers.
  virtual void begin(const OptimizerRecipe& recipe, const ShardPlan& plan,
                     at::Tensor& parameters) = 0;

  /// Sends the gradient at the parameters last received and receives newer parameters. `gradient`
  /// and `parameters` are flat, in the order of the plan. present[parameter] says whether the
  /// parameter has a gradient. If `present` is empty, this worker contributes no gradient in this
  /// step and `gradient` is not read.
  virtual ExchangeReport exchange(const at::Tensor& gradient, const std::vector<bool>& present,
                                  const std::vector<double>& learning_rates,
                                  at::Tensor& parameters) = 0;

  /// Calls ParameterServer::suspend_participation() on every server. To leave, destroy the link.
  virtual void suspend_participation() = 0;
};

} // namespace troupe::learner
