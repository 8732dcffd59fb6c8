#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/policy_graph/policy_graph.hpp"
#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// The type of exported weights. Biases, gains and the arithmetic remain float32.
enum class WeightType : std::uint8_t {
  float32,
  bfloat16, // rounded to nearest, ties to even
  int8      // with a float32 scale for each output: its largest absolute weight / 127
};

const char* weight_type_name(WeightType type); // "float", "bfloat16", "int8"
/// Throws std::invalid_argument if the name is unknown.
WeightType weight_type_named(const std::string& name);

/// The 16 bits of the nearest bfloat16.
std::uint16_t bfloat16_bits(float value);

struct Int8Weight {
  std::vector<std::int8_t> values; // in the layout of the layer's weight
  std::vector<float> scales;       // [outputs]
};
Int8Weight int8_weight(const GraphLayer& layer);

/// The policy with its weights rounded to this type.
PolicyGraph with_weights(PolicyGraph graph, WeightType type);

/// The policy's tensors for a safetensors file: "layer0.weight" in PyTorch's layouts,
/// "layer0.bias", ….
TensorMap tensors_of(const PolicyGraph& graph);

} // namespace troupe::learner
