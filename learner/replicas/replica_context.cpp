#include "learner/replicas/replica_context.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <torch/optim/optimizer.h>

#include "learner/gradients/update_rule.hpp"
#include "learner/gradients/wrapped_optimizer.hpp"

namespace troupe::learner {
namespace {

const std::string kRulePrefix = "update_rule."; // in rule_state(), before the optimizer's number

} // namespace

ReplicaContext::ReplicaContext(collectives::Communicator* communicator, std::uint64_t seed,
                               at::Device device)
    : ReplicaContext(ReplicaAssignment{.replica_id = communicator ? communicator->rank() : 0,
                                       .num_replicas = communicator ? communicator->size() : 1,
                                       .communicator = communicator,
                                       .devices = {device}},
                     seed) {}

ReplicaContext::ReplicaContext(ReplicaAssignment assignment, std::uint64_t seed)
    : ReplicaCollectives(assignment.communicator,
                         assignment.devices.empty() ? at::Device(at::kCPU) : assignment.devices[0],
                         assignment.communicator || assignment.replicas_in_sync <= 1),
      assignment_(std::move(assignment)),
      seed_(seed) {
  if (assignment_.devices.empty())
    assignment_.devices.emplace_back(at::kCPU);
}

int ReplicaContext::num_replicas_in_sync() const {
  return assignment_.replicas_in_sync > 0 ? assignment_.replicas_in_sync : group_size();
}

at::Device ReplicaContext::logical_device(int i) const {
  if (i < 0 || i >= num_logical_devices())
    throw std::out_of_range("logical_device " + std::to_string(i) + ": a replica has "
                            + std::to_string(num_logical_devices())
                            + "; give each more devices (devices_per_replica)");
  return assignment_.devices[static_cast<std::size_t>(i)];
}

std::unique_ptr<WrappedOptimizer>
ReplicaContext::wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer) {
  return wrap_optimizer(std::move(optimizer), WrappedOptimizerOptions{});
}

std::unique_ptr<WrappedOptimizer>
ReplicaContext::wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer,
                               const WrappedOptimizerOptions& options) {
  const int number = optimizers_++;
  auto with_place = options;
  if (!with_place.timeline)
    with_place.timeline = assignment_.timeline;
  with_place.replicas_in_sync = num_replicas_in_sync();
  std::shared_ptr<UpdateRule> rule;
  if (assignment_.update_rule) {
    rule = assignment_.update_rule(number);
    rules_.push_back(rule);
  }
  return std::make_unique<WrappedOptimizer>(std::move(optimizer), communicator(), with_place,
                                            std::move(rule));
}

void ReplicaContext::suspend_participation() {
  for (const auto& rule : rules_)
    if (const auto alive = rule.lock())
      alive->suspend_participation();
}

void ReplicaContext::on_parameters_restored() {
  for (const auto& rule : rules_)
    if (const auto alive = rule.lock())
      alive->on_parameters_restored();
}

TensorMap ReplicaContext::rule_state() const {
  TensorMap all;
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (const auto alive = rules_[i].lock())
      for (const auto& [name, tensor] : alive->state())
        all[kRulePrefix + std::to_string(i) + "." + name] = tensor;
  return all;
}

void ReplicaContext::load_rule_state(TensorMap& state, std::int64_t updates) {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const std::string prefix = kRulePrefix + std::to_string(i) + ".";
    TensorMap saved;
    for (const auto& [name, tensor] : state)
      if (name.starts_with(prefix))
        saved[name.substr(prefix.size())] = tensor;
    if (const auto alive = rules_[i].lock(); alive && !saved.empty())
      alive->load(saved, updates);
  }
  std::erase_if(state, [](const auto& entry) { return entry.first.starts_with(kRulePrefix); });
}

Metrics ReplicaContext::metrics() const {
  Metrics all;
  for (const auto& rule : rules_)
    if (const auto alive = rule.lock())
      for (const auto& [name, value] : alive->metrics()) {
        const bool least = name == "learning_rate_scale" || name == "version";
        const auto [at, made] = all.emplace(name, value);
        if (!made)
          at->second = least ? std::min(at->second, value) : std::max(at->second, value);
      }
  return all;
}

} // namespace troupe::learner
