#include "learner/parameter_server/parameter_server_rule.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/optimizer.h>

#include "collectives/communicator.hpp"

namespace troupe::learner {
namespace {

class ParameterServerRule : public UpdateRule {
public:
  ParameterServerRule(std::unique_ptr<ParameterLink> link,
                      const ParameterServerRuleOptions& options)
      : link_(std::move(link)), options_(options) {
    if (options_.communicator && options_.communicator->size() == 1)
      options_.communicator = nullptr;
    const bool first = !options_.communicator || options_.communicator->rank() == 0;
    if (first != (link_ != nullptr))
      throw std::invalid_argument(
          "the first replica of a sync group must have a link to the parameter "
          "servers, the others must not");
  }

  void begin(torch::optim::Optimizer& optimizer,
             const std::vector<at::Tensor>& parameters) override {
    optimizer_ = &optimizer;
    const at::NoGradGuard guard;
    flat_.emplace(parameters, plan_of(optimizer));
    parameters_ = flat_->make_flat();
    gradient_ = flat_->make_flat();
    flat_->read(parameters_);
    if (link_)
      link_->begin(options_.describe(optimizer), flat_->plan(), parameters_);
    share();
    flat_->write(parameters_);
  }

  void update() override {
    const at::NoGradGuard guard;
    auto present = flat_->read_gradients(gradient_);
    if (options_.communicator)
      average(present);
    if (std::find(present.begin(), present.end(), true) == present.end())
      present.clear();
    if (link_) {
      report_ = link_->exchange(gradient_, present, learning_rates(*optimizer_), parameters_);
      updates_applied_ = version_ ? std::max<std::int64_t>(0, report_.version - *version_) : 1;
      version_ = report_.version;
    }
    share();
    share_advanced();
    flat_->write(parameters_);
  }

  std::int64_t updates_applied() const override { return updates_applied_; }

  void suspend_participation() override {
    if (link_)
      link_->suspend_participation();
  }

  void on_parameters_restored() override { flat_->write(parameters_); }

  Metrics metrics() const override {
    return {{"staleness", static_cast<double>(report_.staleness)},
            {"dropped_gradients", report_.dropped},
            {"learning_rate_scale", report_.rate_scale},
            {"rewound_servers", report_.rewound},
            {"version", static_cast<double>(report_.version)},
            {"server_wait_seconds", report_.waited_seconds}};
  }

private:
  ShardPlan plan_of(const torch::optim::Optimizer& optimizer) {
    std::vector<ParameterSize> sizes;
    std::int64_t number = 0;
    for (const auto& group : optimizer.param_groups()) {
      for (const auto& parameter : group.params())
        sizes.push_back({.elements = parameter.numel(), .group = number});
      ++number;
    }
    auto servers = at::full({1}, link_ ? link_->servers() : 0, at::kLong);
    if (options_.communicator)
      options_.communicator->broadcast(servers, 0);
    return plan_shards(sizes, static_cast<int>(servers.item<std::int64_t>()));
  }

  /// Averages over the sync group. A parameter without a gradient on some replicas counts as zero
  /// there; a replica without any gradient does not count.
  void average(std::vector<bool>& present) {
    const auto count = static_cast<std::int64_t>(present.size());
    auto flags = at::zeros({count + 1}, at::kInt); // the last one: has any gradient
    auto* values = flags.mutable_data_ptr<int>();
    std::copy(present.begin(), present.end(), values);
    values[count] = std::find(present.begin(), present.end(), true) != present.end();
    options_.communicator->all_reduce(gradient_, collectives::ReduceOp::mean);
    options_.communicator->all_reduce(flags, collectives::ReduceOp::sum);
    for (std::size_t i = 0; i < present.size(); ++i)
      present[i] = values[i] > 0;
    const int replicas = options_.communicator->size();
    if (values[count] > 0 && values[count] < replicas)
      gradient_.mul_(static_cast<double>(replicas) / values[count]);
  }

  void share() {
    if (options_.communicator)
      options_.communicator->broadcast(parameters_, 0);
  }

  void share_advanced() {
    if (!options_.communicator)
      return;
    auto count = at::full({1}, updates_applied_, at::kLong);
    options_.communicator->broadcast(count, 0);
    updates_applied_ = count.item<std::int64_t>();
  }

  std::unique_ptr<ParameterLink> link_;
  ParameterServerRuleOptions options_;
  torch::optim::Optimizer* optimizer_ = nullptr;
  std::optional<FlatParameters> flat_;
  at::Tensor parameters_; // flat; as last received
  at::Tensor gradient_;
  ExchangeReport report_;
  std::optional<std::int64_t> version_; // of the last update()
  std::int64_t updates_applied_ = 1;
};

} // namespace

std::unique_ptr<UpdateRule> make_parameter_server_rule(std::unique_ptr<ParameterLink> link,
                                                       const ParameterServerRuleOptions& options) {
  return std::make_unique<ParameterServerRule>(std::move(link), options);
}

UpdateRuleFactory local_parameter_server_rules(LocalParameterServer& server, int worker,
                                               const ParameterServerRuleOptions& options) {
  return [&server, worker, options](int optimizer) {
    const bool first = !options.communicator || options.communicator->rank() == 0;
    return make_parameter_server_rule(first ? server.link(worker, optimizer) : nullptr, options);
  };
}

} // namespace troupe::learner
