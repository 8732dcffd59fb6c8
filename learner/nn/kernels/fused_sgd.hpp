#pragma once

#include <torch/optim/sgd.h>

#include "learner/nn/kernels/device_optimizer.hpp"

namespace troupe::learner {

/// A torch::optim::SGD whose update reads and writes each parameter, gradient and momentum once
/// (LibTorch's makes a pass for each term). Options, state, arithmetic, saving and loading are the
/// same. Supports dense gradients, in float32, float64 and bfloat16 on the CPU, and on CUDA.
class FusedSgd : public torch::optim::SGD, public DeviceOptimizer {
public:
  using SGD::SGD;
  at::Tensor step(LossClosure closure = nullptr) override;
  /// Throws std::invalid_argument if the options have dampening.
  void step_on_device(const DeviceStep& step) override;
};

} // namespace troupe::learner
