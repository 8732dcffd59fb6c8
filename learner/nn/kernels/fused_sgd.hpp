#pragma once

#include <torch/optim/sgd.h>

#include "learner/nn/kernels/device_optimizer.hpp"

namespace troupe::learner {

/// torch::optim::SGD whose update reads and writes each parameter, gradient and momentum once
/// (LibTorch's makes a pass for each term). The same options, state and arithmetic, saved and
/// loaded alike. Gradients that are dense; float32, float64 and bfloat16 on the CPU, and CUDA.
class FusedSgd : public torch::optim::SGD, public DeviceOptimizer {
public:
  using SGD::SGD;
  at::Tensor step(LossClosure closure = nullptr) override;
  /// Throws std::invalid_argument for options with dampening.
  void step_on_device(const DeviceStep& step) override;
};

} // namespace troupe::learner
