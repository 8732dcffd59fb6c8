#pragma once

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

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

class FusedAdamW : public torch::optim::AdamW {
public:
  using AdamW::AdamW;
  at::Tensor step(LossClosure closure = nullptr) override;
};

} // namespace troupe::learner
