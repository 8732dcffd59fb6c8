#include "learner/agents/parts/acting_mlp.hpp"

#include <algorithm>

#include <torch/types.h>

#include "learner/nn/kernels/kernel_table.hpp"

namespace troupe::learner {
namespace {

std::vector<float> values(const at::Tensor& tensor) {
  const float* first = tensor.const_data_ptr<float>();
  return {first, first + tensor.numel()};
}

} // namespace

void ActingMlp::load(const std::vector<LayerTensors>& parameters) {
  const KernelTable& kernels = kernel_table();
  layers_.resize(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Layer& layer = layers_[i];
    layer.inputs = mlp_.layer_inputs(i);
    layer.outputs = mlp_.layer(i).outputs;
    layer.activation = mlp_.layer(i).activation;
    layer.norm_input = mlp_.layer(i).norm_input;
    layer.residual = mlp_.layer(i).residual;
    const std::int64_t step = kernels.panel_columns;
    layer.weight.resize(
        static_cast<std::size_t>(layer.inputs * ((layer.outputs + step - 1) / step * step)));
    kernels.pack(parameters[i].weight.const_data_ptr<float>(), layer.outputs, 1, layer.inputs,
                 layer.outputs, layer.weight.data());
    layer.bias = values(parameters[i].bias);
    if (parameters[i].gain.defined()) {
      layer.gain = values(parameters[i].gain);
      layer.shift = values(parameters[i].shift);
    }
  }
}

const float* ActingMlp::forward(const float* x, std::int64_t batch) {
  const KernelTable& kernels = kernel_table();
  inverse_.resize(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const auto inputs = static_cast<std::size_t>(batch * layer.inputs);
    const auto size = static_cast<std::size_t>(batch * layer.outputs);
    raw_.resize(std::max({raw_.size(), inputs, size}));
    normal_.resize(std::max(normal_.size(), inputs));
    after_.resize(std::max(after_.size(), size));
    if (i + 1 < layers_.size() && layers_[i + 1].residual)
      kept_.assign(x, x + inputs);
    if (layer.norm_input) {
      std::copy_n(x, inputs, raw_.data());
      kernels.norm(AfterNorm::none, raw_.data(), layer.gain.data(), layer.shift.data(),
                   normal_.data(), inverse_.data(), batch, layer.inputs);
      x = normal_.data();
    }
    const bool normalised = normalises(layer.activation);
    float* product = normalised ? raw_.data() : after_.data();
    kernels.multiply(x, layer.inputs, 1, layer.weight.data(), layer.bias.data(), false, product,
                     layer.outputs, batch, layer.outputs, layer.inputs);
    if (normalised)
      kernels.norm(after_norm(layer.activation), product, layer.gain.data(), layer.shift.data(),
                   after_.data(), inverse_.data(), batch, layer.outputs);
    else if (layer.activation == Activation::elu)
      kernels.elu(product, batch * layer.outputs);
    else if (layer.activation == Activation::relu)
      kernels.relu(product, batch * layer.outputs);
    for (std::size_t j = 0; layer.residual && j < size; ++j)
      product[j] += kept_[j];
    std::swap(before_, after_);
    x = before_.data();
  }
  return x;
}

} // namespace troupe::learner
