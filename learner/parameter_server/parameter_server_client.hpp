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

struct ParameterServerClientOptions {
  std::vector<std::string> endpoints{}; // of the servers, in the same order on all workers
  int worker = 0;
  std::chrono::milliseconds timeout{60'000}; // of an exchange, with all servers
  /// After which a server that has not answered is asked what became of the step; then rarer, up to
  /// 8 times as long. What it has lost (it has restarted) is sent again.
  std::chrono::milliseconds ask_interval{250};
  /// Between two signs of life; well below the servers' worker_timeout.
  std::chrono::milliseconds beat_interval{1'000};
  std::optional<env::wire::SharedMemory> shared_memory = env::wire::SharedMemory{};
  std::optional<env::wire::ClientKeys> keys{}; // of servers with keys; all have the same
};

/// A worker's way to servers in other processes: gradients to all of them, parameters from all of
/// them, at once. A server that restarts at its endpoint is found again; one without a snapshot is
/// given the parameters that this worker has. A thread says that the worker lives, also while it
/// computes. What fails names the endpoint.
class ParameterServerClient : public ParameterLink {
public:
  /// Throws std::invalid_argument on options out of range.
  ParameterServerClient(env::wire::Context& context, const ParameterServerClientOptions& options,
                        int optimizer = 0);
  ~ParameterServerClient() override; // leaves

  int servers() const override;
  void begin(const OptimizerRecipe& recipe, const ShardPlan& plan, at::Tensor& parameters) override;
  ExchangeReport exchange(const at::Tensor& gradient, const std::vector<bool>& present,
                          const std::vector<double>& learning_rates,
                          at::Tensor& parameters) override;
  void suspend_participation() override;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// For a replica that is a process, or for the first replica of a sync group of several processes
/// (the others have a group communicator and no link).
UpdateRuleFactory remote_parameter_server_rules(env::wire::Context& context,
                                                const ParameterServerClientOptions& client,
                                                const ParameterServerRuleOptions& options = {});

} // namespace troupe::learner
