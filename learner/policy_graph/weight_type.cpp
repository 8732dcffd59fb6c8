#include "learner/policy_graph/weight_type.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include <torch/types.h>

namespace troupe::learner {
namespace {

/// The number of a layer's outputs, and the output that weight number `i` belongs to. For
/// convolutions, an output is a channel.
std::size_t outputs_of(const GraphLayer& layer) {
  return layer.bias.size();
}

std::size_t output_of(const GraphLayer& layer, std::size_t i) {
  return layer.kind == GraphLayer::Kind::convolution ? i / (layer.weight.size() / outputs_of(layer))
                                                     : i % outputs_of(layer);
}

at::Tensor tensor_of(const std::vector<float>& numbers, const std::vector<std::int64_t>& shape) {
  const at::Tensor made = at::empty(shape, at::kFloat);
  std::copy(numbers.begin(), numbers.end(), made.mutable_data_ptr<float>());
  return made;
}

} // namespace

const char* weight_type_name(WeightType type) {
  switch (type) {
  case WeightType::float32:
    return "float";
  case WeightType::bfloat16:
    return "bfloat16";
  case WeightType::int8:
    return "int8";
  }
  throw std::logic_error("no such type of weights");
}

WeightType weight_type_named(const std::string& name) {
  for (const WeightType type : {WeightType::float32, WeightType::bfloat16, WeightType::int8})
    if (name == weight_type_name(type))
      return type;
  throw std::invalid_argument("weights '" + name + "' are unknown; name float, bfloat16 or int8");
}

std::uint16_t bfloat16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

Int8Weight int8_weight(const GraphLayer& layer) {
  Int8Weight made{std::vector<std::int8_t>(layer.weight.size()),
                  std::vector<float>(outputs_of(layer), 0)};
  for (std::size_t i = 0; i < layer.weight.size(); ++i) {
    float& scale = made.scales[output_of(layer, i)];
    scale = std::max(scale, std::abs(layer.weight[i]) / 127);
  }
  for (std::size_t i = 0; i < layer.weight.size(); ++i)
    if (const float scale = made.scales[output_of(layer, i)]; scale > 0)
      made.values[i] = static_cast<std::int8_t>(
          std::clamp(std::nearbyint(layer.weight[i] / scale), -127.F, 127.F));
  return made;
}

PolicyGraph with_weights(PolicyGraph graph, WeightType type) {
  for (GraphLayer& layer : graph.layers) {
    if (layer.weight.empty() || type == WeightType::float32)
      continue;
    if (type == WeightType::bfloat16) {
      for (float& weight : layer.weight)
        weight = std::bit_cast<float>(static_cast<std::uint32_t>(bfloat16_bits(weight)) << 16);
      continue;
    }
    const Int8Weight rounded = int8_weight(layer);
    for (std::size_t i = 0; i < layer.weight.size(); ++i)
      layer.weight[i] = static_cast<float>(rounded.values[i]) * rounded.scales[output_of(layer, i)];
  }
  return graph;
}

TensorMap tensors_of(const PolicyGraph& graph) {
  TensorMap made;
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    const GraphLayer& layer = graph.layers[i];
    const std::string name = "layer" + std::to_string(i);
    const auto outputs = static_cast<std::int64_t>(layer.bias.size());
    if (layer.kind == GraphLayer::Kind::convolution)
      made[name + ".weight"] =
          tensor_of(layer.weight, {outputs, layer.in.channels, layer.kernel, layer.kernel});
    else if (!layer.weight.empty())
      made[name + ".weight"] =
          tensor_of(layer.weight,
                    {static_cast<std::int64_t>(layer.weight.size()) / outputs, outputs})
              .t()
              .contiguous();
    if (!layer.bias.empty())
      made[name + ".bias"] = tensor_of(layer.bias, {outputs});
    if (!layer.gain.empty())
      made[name + ".gain"] = tensor_of(layer.gain, {static_cast<std::int64_t>(layer.gain.size())});
  }
  return made;
}

} // namespace troupe::learner
