#include "learner/agents/learners/saved_replica.hpp"

#include <algorithm>

#include <torch/types.h>

#include "learner/replicas/replica_context.hpp"

namespace troupe::learner {
namespace {

/// "encoder.conv0.weight", "torso.conv1.bias".
bool is_of_encoder(const std::string& name) {
  return name.starts_with("encoder.") || name.find(".conv") != std::string::npos;
}

TensorMap copies_of(TensorMap tensors) {
  for (auto& [name, tensor] : tensors)
    tensor = tensor.clone();
  return tensors;
}

} // namespace

void SavedReplica::begin(ReplicaContext& context, const std::string& precision) {
  options_ =
      at::TensorOptions(precision == "float64" ? at::kDouble : at::kFloat).device(context.device());
  timeline_ = context.timeline();
  random_ = Random(context.seed());
  moments_.build(options_);
  for (const auto& [name, value] : counters_)
    *value = 0;
}

at::Tensor SavedReplica::published(ParameterGroup& group) const {
  const at::Tensor flat = group.flat().detach().to(at::kCPU, at::kFloat, false, true);
  return normalises_ ? at::cat({moments_.published(), flat}) : flat;
}

std::pair<at::Tensor, at::Tensor> SavedReplica::states(ReplicaContext& context,
                                                       const TensorMap& batch) {
  const at::Tensor state = batch.at("observation").to(options_);
  const at::Tensor next = batch.at("next_observation").to(options_);
  if (!normalises_)
    return {state, next};
  moments_.observe(context, state);
  return {moments_.normalised(state), moments_.normalised(next)};
}

TensorMap SavedReplica::parameters() {
  TensorMap out;
  for (const Group& one : groups_)
    one.group->show_parameters(out, one.target);
  if (normalises_)
    moments_.show("observation", out);
  return out;
}

TensorMap SavedReplica::optimizer_state() {
  TensorMap out;
  for (const Group& one : groups_) {
    one.group->show_moments(out);
    out["counters." + one.name + "adam_steps"] = counter(one.group->adam().steps());
  }
  for (const auto& [name, value] : counters_)
    out["counters." + name] = counter(*value);
  out["random.state"] = counter(static_cast<std::int64_t>(random_.state()));
  return out;
}

void SavedReplica::begin_again(SavedReplica& fresh,
                               const std::function<bool(const std::string&)>& names) {
  at::NoGradGuard no_gradient;
  TensorMap parameters = copies_of(this->parameters());
  TensorMap state = copies_of(optimizer_state());
  const TensorMap first = fresh.parameters();
  for (const Group& one : groups_) {
    const auto& entries = one.group->layout().entries();
    const auto begins = [&](const ParameterLayout::Entry& entry) {
      return one.name != "encoder_" && !is_of_encoder(entry.name) && names(entry.name);
    };
    if (std::none_of(entries.begin(), entries.end(), begins))
      continue;
    for (const auto& entry : entries) {
      for (const char* prefix : {"", "target."})
        if (const std::string name = prefix + entry.name;
            begins(entry) && parameters.contains(name))
          parameters[name] = first.at(name);
      for (const char* moment : {"adam.exp_avg.", "adam.exp_avg_sq."})
        state.at(moment + entry.name).zero_();
    }
    state["counters." + one.name + "adam_steps"] = counter(0);
  }
  load(parameters, state);
}

void SavedReplica::load(const TensorMap& parameters_in, const TensorMap& state_in) {
  at::NoGradGuard no_gradient;
  const TensorMap state = optimizer_state();
  replace_by_name(parameters_in, parameters(), state_in, state);
  const auto number = [&](const std::string& name) { return state.at(name).item<std::int64_t>(); };
  for (const Group& one : groups_)
    one.group->adam().set_steps(number("counters." + one.name + "adam_steps"));
  for (const auto& [name, value] : counters_)
    *value = number("counters." + name);
  random_.set_state(static_cast<std::uint64_t>(number("random.state")));
}

} // namespace troupe::learner
