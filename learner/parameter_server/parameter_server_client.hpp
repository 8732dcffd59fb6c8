#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "env/wire/keys.hpp"
#include "env/wire/socket.hpp"
#include "learner/parameter_server/parameter_link.hpp"
#include "learner/parameter_server/parameter_server_rule.hpp"

namespace troupe::learner {

class ClientAbort;

struct ParameterServerClientOptions {
  std::vector<std::string> endpoints{}; // of the servers; in the same order on all workers
  int worker = 0;
  std::chrono::milliseconds timeout{60'000}; // of one exchange with all servers
  /// Time after which a silent server is asked what became of the step. Later requests are less
  /// frequent, at intervals of up to 8 times as long. Anything that a restarted server has lost is
  /// sent again.
  std::chrono::milliseconds ask_interval{250};
  /// Interval between heartbeats; must be well below the servers' worker_timeout.
  std::chrono::milliseconds beat_interval{1'000};
  std::optional<env::wire::SharedMemory> shared_memory = env::wire::SharedMemory{};
  std::optional<env::wire::ClientKeys> keys{}; // for servers with keys; the same for all
  std::shared_ptr<const ClientAbort> abort{};  // null: waits end only at their deadlines
};

/// Connects a worker to servers in other processes. It sends gradients to all servers and receives
/// parameters from all of them concurrently. It reconnects to a server that restarts at its
/// endpoint; a server without a snapshot then gets the parameters that this worker has. A thread
/// sends heartbeats, even while the worker computes. Errors name the endpoint.
class ParameterServerClient : public ParameterLink {
public:
  /// Throws std::invalid_argument if an option is out of range.
  ParameterServerClient(env::wire::Context& context, const ParameterServerClientOptions& options,
                        int optimizer = 0);
  ~ParameterServerClient() override; // leaves

  int servers() const override;
  std::int64_t version() const override;
  void begin(const OptimizerRecipe& recipe, const ShardPlan& plan, at::Tensor& parameters) override;
  ExchangeReport exchange(const at::Tensor& gradient, const std::vector<bool>& present,
                          const std::vector<double>& learning_rates,
                          at::Tensor& parameters) override;
  void suspend_participation() override;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Makes the rules of a replica that is a separate process, or of a sync group of several
/// processes. Only the first replica of the group has a link; the others use the group's
/// communicator.
UpdateRuleFactory remote_parameter_server_rules(env::wire::Context& context,
                                                const ParameterServerClientOptions& client,
                                                const ParameterServerRuleOptions& options = {});

} // namespace troupe::learner
