#include "learner/nn/residual_layers.hpp"

#include <stdexcept>
#include <string>

namespace troupe::learner {

std::vector<LayerSpec> residual_layers(std::int64_t width, int blocks, std::int64_t outputs) {
  constexpr std::int64_t kExpansion = 4;
  std::vector<LayerSpec> layers{{"input", width}};
  for (int i = 0; i < blocks; ++i) {
    const std::string name = "block" + std::to_string(i);
    layers.push_back({name + ".expand", kExpansion * width, Activation::relu, true});
    layers.push_back({name + ".contract", width, Activation::none, false, true});
  }
  layers.push_back({"output", outputs, Activation::none, true});
  return layers;
}

std::vector<LayerSpec> relu_layers(const std::vector<std::int64_t>& widths, std::int64_t outputs,
                                   int blocks) {
  if (blocks > 0) {
    if (widths.size() != 1)
      throw std::invalid_argument("a network of residual blocks has "
                                  + std::to_string(widths.size()) + " widths; it must have one");
    return residual_layers(widths[0], blocks, outputs);
  }
  std::vector<LayerSpec> layers;
  for (std::size_t i = 0; i < widths.size(); ++i)
    layers.push_back({"layer" + std::to_string(i), widths[i], Activation::relu});
  layers.push_back({"output", outputs, Activation::none});
  return layers;
}

} // namespace troupe::learner
