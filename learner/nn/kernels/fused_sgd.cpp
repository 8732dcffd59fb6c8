#include "learner/nn/kernels/fused_sgd.hpp"

#include <stdexcept>

#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>

namespace troupe::learner {
namespace {

struct SgdLists {
  std::vector<at::Tensor> parameters, gradients, momentum;
};

/// The parameters of a group that have gradients, with everything that their update needs.
template <class States>
class SgdGroup {
public:
  SgdGroup(torch::optim::OptimizerParamGroup& group, States& states)
      : options_(static_cast<const torch::optim::SGDOptions&>(group.options())), states_(&states) {
    for (auto& parameter : group.params())
      if (parameter.grad().defined())
        add(parameter);
  }

  const torch::optim::SGDOptions& options() const { return options_; }
  SgdLists first; // with new momentum that is not initialised
  SgdLists later;

private:
  void add(const at::Tensor& parameter) {
    auto gradient = parameter.grad();
    if (gradient.strides() != parameter.strides())
      gradient = at::empty_like(parameter).copy_(gradient);
    auto* lists = &later;
    if (options_.momentum() != 0) {
      auto& state = (*states_)[parameter.unsafeGetTensorImpl()];
      if (!state) {
        lists = &first;
        auto fresh = std::make_unique<torch::optim::SGDParamState>();
        fresh->momentum_buffer(at::empty_like(parameter));
        state = std::move(fresh);
      }
      auto& momentum = static_cast<torch::optim::SGDParamState&>(*state).momentum_buffer();
      if (momentum.strides() != parameter.strides()) // saved in another layout
        momentum = at::empty_like(parameter).copy_(momentum);
      lists->momentum.push_back(momentum);
    }
    lists->parameters.push_back(parameter);
    lists->gradients.push_back(std::move(gradient));
  }

  const torch::optim::SGDOptions& options_;
  States* states_;
};

} // namespace

at::Tensor FusedSgd::step(LossClosure closure) {
  at::Tensor loss;
  if (closure) {
    const at::AutoGradMode gradient(true);
    loss = closure();
  }
  const at::NoGradGuard no_gradient;
  for (auto& group : param_groups_) {
    SgdGroup lists(group, state_);
    const auto& options = lists.options();
    for (auto* some : {&lists.first, &lists.later}) // the first momentum is the gradient
      if (!some->parameters.empty())
        at::_fused_sgd_(some->parameters, some->gradients, some->momentum, options.weight_decay(),
                        options.momentum(), options.lr(), options.dampening(), options.nesterov(),
                        false, some == &lists.first);
  }
  return loss;
}

void FusedSgd::step_on_device(const DeviceStep& step) {
  const at::NoGradGuard no_gradient;
  for (std::size_t i = 0; i < param_groups_.size(); ++i) {
    SgdGroup lists(param_groups_[i], state_);
    const auto& options = lists.options();
    if (options.dampening() != 0)
      throw std::invalid_argument("FusedSgd: a step on the device does not support dampening");
    // Without dampening, a momentum of 0 becomes the gradient in the first step. It stays 0 if the
    // step is left out.
    for (auto& momentum : lists.first.momentum)
      momentum.zero_();
    for (auto* some : {&lists.first, &lists.later})
      if (!some->parameters.empty())
        at::_fused_sgd_(some->parameters, some->gradients, some->momentum, options.weight_decay(),
                        options.momentum(), step.rates.select(0, static_cast<std::int64_t>(i)), 0,
                        options.nesterov(), false, false, {}, step.left_out);
  }
}

} // namespace troupe::learner
