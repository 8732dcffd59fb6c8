#pragma once

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include "learner/nn/kernels/device_optimizer.hpp"

namespace troupe::learner {

/// torch::optim::Adam and AdamW with an update that reads and writes each parameter, gradient and
/// moment once (LibTorch's makes a pass for each term). Options, param groups, state, arithmetic,
/// saving and loading are the same. Supports dense gradients, in float32, float64 and bfloat16 on
/// the CPU, and on CUDA. (FusedAdam is different: it works on one flat tensor, with the kernels of
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
