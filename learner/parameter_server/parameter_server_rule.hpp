#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "learner/gradients/update_rule.hpp"
#include "learner/parameter_server/local_parameter_server.hpp"

namespace troupe::collectives {
class Communicator;
}

namespace troupe::learner {

struct ParameterServerRuleOptions {
  /// The sync group's communicator if each worker is a sync group: its first replica pushes the
  /// mean of the group's gradients and broadcasts the parameters. Null: each replica is a worker.
  collectives::Communicator* communicator = nullptr;
  OptimizerDescriber describe = learner::describe;
  int optimizer = 0; // number of the wrapped optimizer; set by parameter_server_rules()
  /// For checkpoints of the replicas: ParameterServer::snapshot() and replace() of the servers of
  /// an optimizer. Empty: the servers have their own checkpoints.
  std::function<TensorMap(int optimizer)> snapshot = {};
  std::function<void(int optimizer, const TensorMap& snapshot, std::int64_t load)> replace = {};
};

/// Makes rules that send gradients to parameter servers and receive parameters from them. The
/// replica's own optimizer never steps, but its learning rates are sent with every gradient, so
/// schedules work. The servers' options determine the strategy (asynchronous, backup workers,
/// central storage, sync groups). metrics() describes the last update: "staleness",
/// "dropped_gradients" (servers that left the gradient out), "learning_rate_scale" (the factor
/// applied because of staleness), "server_wait_seconds", "version", "rewound_servers".
///
/// `connect` makes the link of the first replica of a sync group; the others have none.
UpdateRuleFactory
parameter_server_rules(const std::function<std::unique_ptr<ParameterLink>(int optimizer)>& connect,
                       const ParameterServerRuleOptions& options);

/// Makes the rules of a replica that is a thread, as `worker` of `server`, which must outlive the
/// rules.
UpdateRuleFactory local_parameter_server_rules(LocalParameterServer& server, int worker,
                                               const ParameterServerRuleOptions& options = {});

} // namespace troupe::learner
