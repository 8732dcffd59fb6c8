#include "learner/parameter_server/parameter_server_rule.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include <ATen/ops/full.h>
#include <torch/optim/optimizer.h>

#include "collectives/communicator.hpp"
#include "learner/gradients/group_presence.hpp"

namespace troupe::learner {
namespace {

const std::string kServersPrefix = "servers."; // in WrappedOptimizer::state()

class ParameterServerRule : public UpdateRule {
public:
  ParameterServerRule(std::unique_ptr<ParameterLink> link,
                      const ParameterServerRuleOptions& options)
      : link_(std::move(link)), options_(options) {
    if (options_.communicator && options_.communicator->size() == 1)
      options_.communicator = nullptr;
  }

  void begin(torch::optim::Optimizer& optimizer,
             const std::vector<at::Tensor>& parameters) override {
    optimizer_ = &optimizer;
    device_ = parameters.front().device();
    const at::NoGradGuard guard;
    flat_.emplace(parameters, plan_of(optimizer));
    parameters_ = flat_->make_flat();
    gradient_ = flat_->make_flat();
    flat_->read(parameters_);
    if (link_)
      link_->begin(options_.describe(optimizer), flat_->plan(), parameters_);
    begun_version_ = link_ ? link_->version() : 0;
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

  TensorMap state() override {
    TensorMap result;
    if (options_.snapshot)
      for (const auto& [name, tensor] : options_.snapshot(options_.optimizer))
        result[kServersPrefix + name] = tensor;
    return result;
  }

  void load(const TensorMap& state, std::int64_t steps) override {
    if (!options_.replace) {
      if (link_ && steps > 0 && begun_version_ == 0)
        throw std::runtime_error(
            "load: the parameter servers have new parameters, which would replace the loaded ones. "
            "Start the servers from their part of the checkpoint (ParameterServerHost::load)");
      return;
    }
    TensorMap snapshot;
    for (auto entry = state.lower_bound(kServersPrefix);
         entry != state.end() && entry->first.starts_with(kServersPrefix); ++entry)
      snapshot[entry->first.substr(kServersPrefix.size())] = entry->second;
    const auto values = snapshot.find("parameters");
    if (values == snapshot.end())
      throw std::runtime_error(
          "load: the state lacks the parameters and moments of the parameter servers. Load, on all "
          "replicas, what state() gave on replica 0 under a strategy whose servers are part of the "
          "program");
    if (values->second.sizes() != parameters_.sizes()
        || values->second.scalar_type() != parameters_.scalar_type())
      throw std::runtime_error("load: the parameters of the parameter servers are "
                               + c10::str(values->second.scalar_type(), values->second.sizes())
                               + "; the optimizer has "
                               + c10::str(parameters_.scalar_type(), parameters_.sizes()));
    try {
      options_.replace(options_.optimizer, snapshot, loads_ + 1);
    } catch (const std::invalid_argument& error) {
      throw std::runtime_error(std::string("load: ") + error.what());
    }
    ++loads_;
    const at::NoGradGuard guard;
    parameters_.copy_(values->second); // without a request, because any replica may load first
    flat_->write(parameters_);
  }

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
    broadcast(servers);
    return plan_shards(sizes, static_cast<int>(servers.item<std::int64_t>()));
  }

  /// Averages over the sync group, unless none of its replicas has a gradient.
  void average(std::vector<bool>& present) {
    const auto group = presence_in_group(*options_.communicator, present, device_);
    present = group.anywhere;
    if (std::find(present.begin(), present.end(), true) == present.end())
      return;
    on_device(gradient_, [&](at::Tensor& tensor) {
      options_.communicator->all_reduce(tensor, collectives::ReduceOp::mean);
    });
    if (group.factor != 1)
      gradient_.mul_(group.factor);
  }

  /// Makes a collective of the sync group where the group's network is: NCCL refuses tensors on the
  /// CPU, where the servers' tensors are.
  template <typename Call>
  void on_device(at::Tensor& tensor, const Call& call) const {
    auto there = tensor.to(device_); // the same tensor if it is there
    call(there);
    if (!there.is_same(tensor))
      tensor.copy_(there);
  }

  void broadcast(at::Tensor& tensor) const {
    if (options_.communicator)
      on_device(tensor, [&](at::Tensor& there) { options_.communicator->broadcast(there, 0); });
  }

  void share() { broadcast(parameters_); }

  void share_advanced() {
    auto count = at::full({1}, updates_applied_, at::kLong);
    broadcast(count);
    updates_applied_ = count.item<std::int64_t>();
  }

  std::unique_ptr<ParameterLink> link_;
  ParameterServerRuleOptions options_;
  torch::optim::Optimizer* optimizer_ = nullptr;
  std::optional<FlatParameters> flat_;
  at::Tensor parameters_; // flat; as last received
  at::Tensor gradient_;
  at::Device device_ = at::kCPU;   // of the parameters
  std::int64_t begun_version_ = 0; // of the servers when the optimizer was wrapped
  std::int64_t loads_ = 0;         // number of states loaded
  ExchangeReport report_;
  std::optional<std::int64_t> version_; // of the last update()
  std::int64_t updates_applied_ = 1;
};

} // namespace

UpdateRuleFactory
parameter_server_rules(const std::function<std::unique_ptr<ParameterLink>(int optimizer)>& connect,
                       const ParameterServerRuleOptions& options) {
  return [connect, options](int optimizer) {
    auto made = options;
    made.optimizer = optimizer;
    const bool first = !options.communicator || options.communicator->rank() == 0;
    return std::make_unique<ParameterServerRule>(first ? connect(optimizer) : nullptr, made);
  };
}

UpdateRuleFactory local_parameter_server_rules(LocalParameterServer& server, int worker,
                                               const ParameterServerRuleOptions& options) {
  auto made = options;
  made.snapshot = [&server](int optimizer) { return server.snapshot(optimizer); };
  made.replace = [&server](int optimizer, const TensorMap& snapshot, std::int64_t load) {
    server.replace(optimizer, snapshot, load);
  };
  return parameter_server_rules(
      [&server, worker](int optimizer) { return server.link(worker, optimizer); }, made);
}

} // namespace troupe::learner
