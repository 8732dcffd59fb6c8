#pragma once

#include <cstdint>
#include <vector>

#include "learner/nn/mlp.hpp"

namespace troupe::learner {

/// The network of SimBa (Lee et al. 2025): a linear layer of `width`, then `blocks` times
/// x + linear(ReLU(linear(LayerNorm(x)))), four times as wide in between, then LayerNorm and a
/// linear layer of `outputs`. Deep networks of this kind learn where plain layers fail; they expect
/// observations in units of their deviations (running_moments.hpp).
std::vector<LayerSpec> residual_layers(std::int64_t width, int blocks, std::int64_t outputs);

/// ReLU layers of these widths and a linear output layer; or, with `blocks` above 0, so many
/// residual blocks of the one width (residual_layers()). Throws
/// std::invalid_argument for blocks of several widths.
std::vector<LayerSpec> relu_layers(const std::vector<std::int64_t>& widths, std::int64_t outputs,
                                   int blocks = 0);

} // namespace troupe::learner
