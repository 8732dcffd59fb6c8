#include "learner/nn/module_state.hpp"

#include <cmath>

#include <ATen/ops/_foreach_lerp.h>
#include <torch/nn/module.h>

namespace troupe::learner {

TensorMap module_state(const torch::nn::Module& module, const std::string& prefix) {
  TensorMap state;
  for (const auto& item : module.named_parameters())
    state[prefix + item.key()] = item.value().detach();
  for (const auto& item : module.named_buffers())
    state[prefix + item.key()] = item.value();
  return state;
}

TensorMap below(const TensorMap& tensors, const std::string& prefix) {
  TensorMap result;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with(prefix))
      result[name.substr(prefix.size())] = tensor;
  return result;
}

void average_module(torch::nn::Module& average, const torch::nn::Module& live, double decay,
                    std::int64_t updates, std::int64_t applied) {
  const at::NoGradGuard guard;
  const auto begun = static_cast<double>(1 + updates) / static_cast<double>(10 + updates);
  const auto from = module_state(live);
  std::vector<at::Tensor> averages, values;
  for (auto& [name, tensor] : module_state(average)) {
    if (!tensor.is_floating_point()) {
      at::Tensor(tensor).copy_(from.at(name));
      continue;
    }
    averages.push_back(tensor);
    values.push_back(from.at(name));
  }
  const double kept = std::min(decay, begun);
  at::_foreach_lerp_(averages, values,
                     1 - (applied == 1 ? kept : std::pow(kept, static_cast<double>(applied))));
}

void lay_out_channels_last(torch::nn::Module& module) {
  const at::NoGradGuard guard;
  for (auto& parameter : module.parameters())
    if (parameter.dim() == 4)
      parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
}

void change_type(torch::nn::Module& module, at::ScalarType type) {
  const at::NoGradGuard guard;
  auto tensors = module.parameters();
  const auto buffers = module.buffers();
  tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  for (auto& tensor : tensors)
    if (tensor.is_floating_point() && tensor.scalar_type() != type)
      tensor.set_data(tensor.to(type));
}

} // namespace troupe::learner
