#include "learner/nn/kernels/fused_sgd.hpp"

#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>

namespace troupe::learner {
namespace {

struct SgdLists {
  std::vector<at::Tensor> parameters, gradients, momentum;
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
    const auto& options = static_cast<torch::optim::SGDOptions&>(group.options());
    SgdLists first, later; // the first momentum is the gradient
    for (auto& parameter : group.params()) {
      auto gradient = parameter.grad();
      if (!gradient.defined())
        continue;
      if (gradient.strides() != parameter.strides())
        gradient = at::empty_like(parameter).copy_(gradient);
      auto* lists = &later;
      if (options.momentum() != 0) {
        auto& state = state_[parameter.unsafeGetTensorImpl()];
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
    for (auto* lists : {&first, &later})
      if (!lists->parameters.empty())
        at::_fused_sgd_(lists->parameters, lists->gradients, lists->momentum,
                        options.weight_decay(), options.momentum(), options.lr(),
                        options.dampening(), options.nesterov(), false, lists == &first);
  }
  return loss;
}

} // namespace troupe::learner
