#pragma once

#include <cstdint>
#include <vector>

#include "learner/nn/mlp.hpp"

namespace troupe::learner {

/// An MLP for acting: float32 on the CPU. load() packs the weights for the kernels. Not
/// thread-safe.
class ActingMlp {
public:
  explicit ActingMlp(const Mlp& mlp) : mlp_(mlp) {}

  void load(const std::vector<LayerTensors>& parameters);
  /// x: [batch, inputs]. Returns [batch, outputs], valid until the next call.
  const float* forward(const float* x, std::int64_t batch);

private:
  struct Layer {
    std::int64_t inputs = 0;
    std::int64_t outputs = 0;
    Activation activation = Activation::none;
    bool norm_input = false;
    bool residual = false;
    std::vector<float> weight;
    std::vector<float> bias;
    std::vector<float> gain;
    std::vector<float> shift;
  };

  Mlp mlp_;
  std::vector<Layer> layers_;
  std::vector<float> before_;
  std::vector<float> after_;
  std::vector<float> raw_;
  std::vector<float> normal_;
  std::vector<float> kept_; // input kept for the next residual layer
  std::vector<float> inverse_;
};

} // namespace troupe::learner
