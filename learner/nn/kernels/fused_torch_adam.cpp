#include "learner/nn/kernels/fused_torch_adam.hpp"

#include <map>

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

namespace troupe::learner {
namespace {

/// The kernel walks through memory, so all tensors of a parameter need the same layout.
void lay_out_as(const at::Tensor& parameter, at::Tensor& tensor) {
  if (tensor.strides() != parameter.strides())
    tensor = at::empty_like(parameter).copy_(tensor);
}

/// Parameters whose moments have the same number of updates.
struct AdamLists {
  std::vector<at::Tensor> parameters, gradients, means, squares, largest;
};

/// Returns the parameter's state, and creates it if it is missing.
template <class State, class Options, class States>
State& state_of(const at::Tensor& parameter, const Options& options, States& states) {
  auto& known = states[parameter.unsafeGetTensorImpl()];
  if (!known) {
    auto fresh = std::make_unique<State>();
    fresh->exp_avg(at::zeros_like(parameter));
    fresh->exp_avg_sq(at::zeros_like(parameter));
    if (options.amsgrad())
      fresh->max_exp_avg_sq(at::zeros_like(parameter));
    known = std::move(fresh);
  }
  auto& state = static_cast<State&>(*known);
  lay_out_as(parameter, state.exp_avg());
  lay_out_as(parameter, state.exp_avg_sq());
  if (options.amsgrad())
    lay_out_as(parameter, state.max_exp_avg_sq());
  return state;
}

template <class State>
void append(const at::Tensor& parameter, State& state, bool amsgrad, AdamLists& lists) {
  auto gradient = parameter.grad();
  lay_out_as(parameter, gradient);
  lists.parameters.push_back(parameter);
  lists.gradients.push_back(std::move(gradient));
  lists.means.push_back(state.exp_avg());
  lists.squares.push_back(state.exp_avg_sq());
  if (amsgrad)
    lists.largest.push_back(state.max_exp_avg_sq());
}

template <class State, class Options, class States, class Update>
void step_group(torch::optim::OptimizerParamGroup& group, States& states, const Update& update) {
  const auto& options = static_cast<const Options&>(group.options());
  std::map<std::int64_t, AdamLists> by_step;
  for (auto& parameter : group.params()) {
    if (!parameter.grad().defined())
      continue;
    auto& state = state_of<State>(parameter, options, states);
    state.step(state.step() + 1);
    append(parameter, state, options.amsgrad(), by_step[state.step()]);
  }
  for (auto& [step, lists] : by_step) {
    const std::vector<at::Tensor> steps(
        lists.parameters.size(),
        at::full({}, static_cast<double>(step),
                 at::TensorOptions(at::kFloat).device(lists.parameters[0].device())));
    update(options, lists, steps);
  }
}

at::Tensor loss_of(const torch::optim::Optimizer::LossClosure& closure) {
  if (!closure)
    return {};
  const at::AutoGradMode gradient(true);
  return closure();
}

} // namespace

at::Tensor FusedTorchAdam::step(LossClosure closure) {
  auto loss = loss_of(closure);
  const at::NoGradGuard no_gradient;
  for (auto& group : param_groups_)
    step_group<torch::optim::AdamParamState, torch::optim::AdamOptions>(
        group, state_, [](const auto& options, AdamLists& lists, const auto& steps) {
          const auto [beta1, beta2] = options.betas();
          at::_fused_adam_(lists.parameters, lists.gradients, lists.means, lists.squares,
                           lists.largest, steps, options.lr(), beta1, beta2, options.weight_decay(),
                           options.eps(), options.amsgrad(), false);
        });
  return loss;
}

at::Tensor FusedAdamW::step(LossClosure closure) {
  auto loss = loss_of(closure);
  const at::NoGradGuard no_gradient;
  for (auto& group : param_groups_)
    step_group<torch::optim::AdamWParamState, torch::optim::AdamWOptions>(
        group, state_, [](const auto& options, AdamLists& lists, const auto& steps) {
          const auto [beta1, beta2] = options.betas();
          at::_fused_adamw_(lists.parameters, lists.gradients, lists.means, lists.squares,
                            lists.largest, steps, options.lr(), beta1, beta2,
                            options.weight_decay(), options.eps(), options.amsgrad(), false);
        });
  return loss;
}

std::vector<float> FusedAdamW::next_numbers() const {
  std::vector<float> numbers;
  for (const auto& group : param_groups_)
    for (const auto& parameter : group.params()) {
      const auto known = state_.find(parameter.unsafeGetTensorImpl());
      const auto made =
          known == state_.end()
              ? 0
              : static_cast<const torch::optim::AdamWParamState&>(*known->second).step();
      numbers.push_back(static_cast<float>(made + 1));
    }
  return numbers;
}

void FusedAdamW::step_on_device(const DeviceStep& step) {
  const at::NoGradGuard no_gradient;
  std::int64_t number = 0; // index of the parameter
  for (std::size_t i = 0; i < param_groups_.size(); ++i) {
    const auto& options =
        static_cast<const torch::optim::AdamWOptions&>(param_groups_[i].options());
    AdamLists lists;
    std::vector<at::Tensor> numbers;
    for (auto& parameter : param_groups_[i].params()) {
      const auto mine = step.numbers.select(0, number++);
      if (!parameter.grad().defined())
        continue;
      append(parameter, state_of<torch::optim::AdamWParamState>(parameter, options, state_),
             options.amsgrad(), lists);
      numbers.push_back(mine);
    }
    const auto [beta1, beta2] = options.betas();
    if (!lists.parameters.empty())
      at::_fused_adamw_(lists.parameters, lists.gradients, lists.means, lists.squares,
                        lists.largest, numbers, step.rates.select(0, static_cast<std::int64_t>(i)),
                        beta1, beta2, options.weight_decay(), options.eps(), options.amsgrad(),
                        false, {}, step.left_out);
  }
}

void FusedAdamW::count_step() {
  for (const auto& group : param_groups_)
    for (const auto& parameter : group.params())
      if (parameter.grad().defined()) {
        auto& state = static_cast<torch::optim::AdamWParamState&>(
            *state_.at(parameter.unsafeGetTensorImpl()));
        state.step(state.step() + 1);
      }
}

} // namespace troupe::learner
