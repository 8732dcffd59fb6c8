#pragma once

#include <functional>
#include <memory>

#include "learner/gradients/update_rule.hpp"
#include "learner/parameter_server/local_parameter_server.hpp"

namespace troupe::collectives {
class Communicator;
}

namespace troupe::learner {

struct ParameterServerRuleOptions {
  /// Of the sync group, if a worker is one: its first replica pushes the mean of their gradients
  /// and gives the others the parameters. Null: each replica is a worker.
  collectives::Communicator* communicator = nullptr;
  OptimizerDescriber describe = learner::describe;
};

/// Gradients go to parameter servers, parameters come back; the replica's own optimizer never
/// steps, but its learning rates go with every gradient, so that schedules work. Which strategy
/// this is (asynchronous, backup workers, central storage, sync groups) the servers' options say.
/// metrics(), of the last update: "staleness", "dropped_gradients" (servers that left it out),
/// "learning_rate_scale" (what its age made of the rate), "server_wait_seconds", "version",
/// "rewound_servers".
///
/// `link`: of the sync group's first replica, null on its others.
std::unique_ptr<UpdateRule>
make_parameter_server_rule(std::unique_ptr<ParameterLink> link,
                           const ParameterServerRuleOptions& options = {});

/// For a replica that is a thread: `worker` of `server`, which outlives the rules.
UpdateRuleFactory local_parameter_server_rules(LocalParameterServer& server, int worker,
                                               const ParameterServerRuleOptions& options = {});

} // namespace troupe::learner
