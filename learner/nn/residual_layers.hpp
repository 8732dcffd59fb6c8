#pragma once

#include <cstdint>
#include <vector>

#include "learner/nn/mlp.hpp"

namespace troupe::learner {

/// The network of SimBa (Lee et al. 2025): a linear layer of `width`; then `blocks` times x +
/// linear(ReLU(linear(LayerNorm(x)))), four times as wide in between; then LayerNorm and a linear
/// layer of `outputs`. Deep networks of this kind learn where plain layers fail. They expect
/// observations normalised by their mean and deviation (running_moments.hpp).
std::vector<LayerSpec> residual_layers(std::int64_t width, int blocks, std::int64_t outputs);

/// Returns ReLU layers of these widths and a linear output layer. If `blocks` is above 0, returns
/// that many residual blocks of the single width instead (residual_layers()). Throws
/// std::invalid_argument for blocks with several widths.
std::vector<LayerSpec> relu_layers(const std::vector<std::int64_t>& widths, std::int64_t outputs,
                                   int blocks = 0);

} // namespace troupe::learner
