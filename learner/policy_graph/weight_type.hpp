#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/policy_graph/policy_graph.hpp"
#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// The type of exported weights; biases and gains stay float32, and so does the arithmetic.
enum class WeightType : std::uint8_t {
  float32,
  bfloat16, // rounded to the nearest, ties to even
  int8      // times a float32 of its output, the largest weight of the output / 127
};

const char* weight_type_name(WeightType type); // "float", "bfloat16", "int8"
/// Throws std::invalid_argument on another name.
WeightType weight_type_named(const std::string& name);

/// The upper half of the nearest bfloat16.
std::uint16_t bfloat16_bits(float value);

struct Int8Weight {
  std::vector<std::int8_t> values; // in the layout of the layer's weight
  std::vector<float> scales;       // of each output
};
Int8Weight int8_weight(const GraphLayer& layer);

/// The policy as it acts with weights of this type.
PolicyGraph with_weights(PolicyGraph graph, WeightType type);

/// Its numbers for a safetensors file: "layer0.weight" in PyTorch's layouts, "layer0.bias", ….
TensorMap tensors_of(const PolicyGraph& graph);

} // namespace troupe::learner
