#pragma once

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include "learner/nn/kernels/device_optimizer.hpp"

namespace troupe::learner {

/// torch::optim::Adam and AdamW whose update reads and writes each parameter, gradient and moment
/// once (LibTorch's makes a pass for each term): the same options, param groups, state and
/// arithmetic, saved and loaded alike. Gradients that are dense; float32, float64 and bfloat16 on
/// the CPU, and CUDA. (FusedAdam is another: over one flat tensor, by the kernels of
/// kernel_table.hpp.)
class FusedTorchAdam : public torch::optim::Adam {
public:
  using Adam::Adam;
  at::Tensor step(LossClosure closure = nullptr) override;
};

class FusedAdamW : public torch::optim::AdamW, public DeviceOptimizer {
public:
  using AdamW::AdamW;
  at::Tensor step(LossClosure closure = nullptr) override;
  std::vector<float> next_numbers() const override;
  void step_on_device(const DeviceStep& step) override;
  void count_step() override;
};

} // namespace troupe::learner
