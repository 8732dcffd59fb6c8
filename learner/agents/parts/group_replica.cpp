#include "learner/agents/parts/group_replica.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

namespace troupe::learner {

void GroupReplica::build(ReplicaContext& context) {
  at::NoGradGuard no_gradient;
  options_ = at::TensorOptions(setting_.precision == "float64" ? at::kDouble : at::kFloat)
                 .device(context.device());
  at::Generator generator = at::detail::createCPUGenerator(context.seed());
  group_.build(context, initial(generator).to(options_), setting_.learning_rate,
               setting_.gradient_norm);
  leaves_ = leaves_of(group_.layout(), group_.flat(), group_.gradient());
  random_ = Random(context.seed());
  updates_ = 0;
}

TensorMap GroupReplica::parameters() {
  TensorMap out;
  group_.show_parameters(out, setting_.target);
  return out;
}

TensorMap GroupReplica::optimizer_state() {
  TensorMap out;
  group_.show_moments(out);
  out["counters.updates"] = counter(updates_);
  out["counters.adam_steps"] = counter(group_.adam().steps());
  out["random.state"] = counter(static_cast<std::int64_t>(random_.state()));
  return out;
}

void GroupReplica::load(const TensorMap& parameters_in, const TensorMap& state_in) {
  at::NoGradGuard no_gradient;
  const TensorMap state = optimizer_state();
  replace_by_name(parameters_in, parameters(), state_in, state);
  const auto number = [&](const char* name) { return state.at(name).item<std::int64_t>(); };
  updates_ = number("counters.updates");
  group_.adam().set_steps(number("counters.adam_steps"));
  random_.set_state(static_cast<std::uint64_t>(number("random.state")));
}

at::Tensor GroupReplica::policy_parameters() {
  return group_.flat().detach().to(at::kCPU, at::kFloat, false, true);
}

} // namespace troupe::learner
