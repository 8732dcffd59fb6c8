#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "learner/parameter_server/parameter_server.hpp"

namespace troupe::learner {

/// What one exchange came to, over all servers.
struct ExchangeReport {
  std::int64_t version = 0;   // of the parameters received; the least of the servers'
  std::int64_t staleness = 0; // of the gradient, the most of the servers'
  int dropped = 0;            // servers that did not use the gradient
  double rate_scale = 1;      // least that a server multiplied the learning rates by
  int rewound = 0;            // servers that have restarted from older parameters
  double waited_seconds = 0;  // in all, from the push to the parameters
};

/// A worker's way to the servers of one optimizer: in its process (LocalParameterServer) or over
/// the wire (ParameterServerClient). One thread. What fails throws std::runtime_error that names
/// the server and the reason; every wait has a deadline.
class ParameterLink {
public:
  virtual ~ParameterLink() = default;

  virtual int servers() const = 0;

  /// Called once. Worker 0's parameters become those of all workers; `parameters` holds them
  /// afterwards. `recipe`, `plan` (of as many shards as servers) and `type` are the same on all
  /// workers.
  virtual void begin(const OptimizerRecipe& recipe, const ShardPlan& plan,
                     at::Tensor& parameters) = 0;

  /// Sends the gradient on the parameters last received, and receives newer ones. `gradient` and
  /// `parameters` are flat, in the order of the plan; `present`: [parameter] whether it has a
  /// gradient; empty: this worker brings none in this step, `gradient` is not read.
  virtual ExchangeReport exchange(const at::Tensor& gradient, const std::vector<bool>& present,
                                  const std::vector<double>& learning_rates,
                                  at::Tensor& parameters) = 0;

  /// Calls ParameterServer::suspend_participation() on every server. The destructor leaves.
  virtual void suspend_participation() = 0;
};

} // namespace troupe::learner
