#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace troupe::learner {

/// Spectral normalisation (Miyato et al. 2018) of every Conv2d, Linear and Embedding within an
/// existing module: their forward() then uses weight / (largest singular value of the weight as a
/// matrix [out, rest]). The parameters keep their names and values. The two vectors of the power
/// iteration become the buffers "weight_u" and "weight_v" beside them. The vectors depend only on
/// the seed and the weights, so replicas with equal seeds and weights keep them equal without a
/// collective. Used by the module's thread. The module must outlive this object, and its device and
/// type must be set before.
class SpectralNorm {
public:
  /// Throws std::invalid_argument if the module has no such layers.
  SpectralNorm(torch::nn::Module& module, std::uint64_t seed);

  /// Call this before each forward pass. It gives the layers their normalised weights, through
  /// which gradients flow back to the parameters (u and v count as constants). With `iterate`, for
  /// training, it first does one step of the power iteration. Do not call it under autocast.
  void apply(bool iterate);

private:
  struct Layer {
    at::Tensor weight; // the parameter
    at::Tensor* used;  // what the layer's forward() uses
    at::Tensor u;      // [out]
    at::Tensor v;      // [rest]
  };
  std::vector<Layer> layers_;
};

} // namespace troupe::learner
