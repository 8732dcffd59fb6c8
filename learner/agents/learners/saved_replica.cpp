#include "learner/agents/learners/saved_replica.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <torch/types.h>

#include "learner/nn/activation_probe.hpp"
#include "learner/nn/kernels/precision.hpp"
#include "learner/replicas/replica_context.hpp"

namespace troupe::learner {
namespace {

/// True for example for "encoder.conv0.weight" and "torso.conv1.bias".
bool is_of_encoder(const std::string& name) {
  return name.starts_with("encoder.") || name.find(".conv") != std::string::npos;
}

/// The kind of network that the parameter belongs to.
std::string kind_of(const std::string& parameter) {
  for (const char* critic : {"critic", "value", "advantage"})
    if (parameter.starts_with(critic))
      return "critic";
  for (const char* policy : {"policy", "log_"}) // log_: deviations, temperature
    if (parameter.starts_with(policy))
      return "policy";
  return "encoder";
}

TensorMap copies_of(TensorMap tensors) {
  for (auto& [name, tensor] : tensors)
    tensor = tensor.clone();
  return tensors;
}

} // namespace

bool in_last_layer(const std::string& parameter) {
  return parameter.find(".output.") != std::string::npos
         || std::count(parameter.begin(), parameter.end(), '.') == 1;
}

void SavedReplica::begin(ReplicaContext& context, const std::string& precision) {
  options_ =
      at::TensorOptions(precision == "float64" ? at::kDouble : at::kFloat).device(context.device());
  rounding_ = choose_rounding(precision, context.device());
  timeline_ = context.timeline();
  random_ = Random(context.seed());
  moments_.build(options_);
  begun_ = false;
  for (const auto& [name, value] : counters_)
    *value = 0;
}

Metrics SavedReplica::make_update(const TensorMap& batch, int variant,
                                  const AgentUpdate::Body& body) {
  if (!std::exchange(begun_, true)) {
    const bool alone = std::all_of(groups_.begin(), groups_.end(), [](const Group& one) {
      return one.group->optimizer().steps_alone();
    });
    update_.build(options_, random_, alone && captures(capture_, options_.device()));
  }
  update_.make(batch, variant, updates_ + 1, body);
  return update_.metrics();
}

std::int64_t SavedReplica::finish_update(ParameterGroup& group, Metrics& metrics,
                                         std::int64_t period) {
  metrics["gradient_norm"] = group.optimizer().gradient_norm();
  const std::int64_t before = updates_ / period;
  updates_ += group.optimizer().updates_applied();
  return updates_ / period - before;
}

at::Tensor SavedReplica::published(const at::Tensor& flat) const {
  const at::Tensor copy = flat.detach().to(at::kCPU, at::kFloat, false, true);
  return normalises_ ? at::cat({moments_.published(), copy}) : copy;
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

at::Tensor SavedReplica::state_of(const TensorMap& batch) const {
  const at::Tensor state = batch.at("observation").to(options_);
  return normalises_ ? moments_.normalised(state) : state;
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

Metrics SavedReplica::diagnosis(const ActivationProbe& probe) {
  at::NoGradGuard no_gradient;
  struct Kind {
    std::int64_t units = 0, dormant = 0;
    double square = 0; // of the gradient's norm
  };
  std::map<std::string, Kind> kinds;
  Metrics out;
  for (const Group& one : groups_) {
    const ParameterLayout& layout = one.group->layout();
    for (std::size_t i = 0; i < layout.entries().size(); ++i) {
      const std::string& name = layout.entries()[i].name;
      Kind& kind = kinds[kind_of(name)];
      kind.square += layout.stored_view(one.group->gradient(), i).square().sum().item<double>();
      const auto* layer = probe.layer(layout.stored_view(one.group->flat(), i));
      if (layer == nullptr)
        continue;
      kind.units += layer->units;
      kind.dormant += layer->dormant;
      if (layer->features.defined() && in_last_layer(name) && kind_of(name) == "critic")
        out.try_emplace("feature_rank", static_cast<double>(effective_rank(layer->features)));
      if (layer->outputs.defined() && in_last_layer(name) && one.tanh_actions > 0)
        out.try_emplace("action_saturation",
                        tanh_saturation(layer->outputs.narrow(1, 0, one.tanh_actions)));
    }
  }
  for (const auto& [name, kind] : kinds) {
    out["gradient_norm_" + name] = std::sqrt(kind.square);
    if (kind.units > 0)
      out["dormant_" + name] = static_cast<double>(kind.dormant) / static_cast<double>(kind.units);
  }
  return out;
}

void SavedReplica::load(const TensorMap& parameters_in, const TensorMap& state_in) {
  at::NoGradGuard no_gradient;
  const TensorMap state = optimizer_state();
  replace_by_name(parameters_in, parameters(), state_in, state);
  const auto number = [&](const std::string& name) { return state.at(name).item<std::int64_t>(); };
  for (const Group& one : groups_) {
    one.group->adam().set_steps(number("counters." + one.name + "adam_steps"));
    one.group->refresh_halves();
  }
  for (const auto& [name, value] : counters_)
    *value = number("counters." + name);
  random_.set_state(static_cast<std::uint64_t>(number("random.state")));
}

} // namespace troupe::learner
