#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace troupe::learner {

/// Spectral normalisation (Miyato et al. 2018) of every Conv2d, Linear and Embedding within a
/// module that is there: their forward() then uses weight / (greatest singular value of the weight
/// as a matrix [out, rest]). The parameters stay, by name and value; the two vectors of the power
/// iteration become buffers beside them, "weight_u" and "weight_v". They depend on the seed and on
/// the weights alone, so that replicas with equal seeds and weights keep equal ones without a
/// collective. One thread, the module's; the module outlives this, and its device and type are
/// settled before.
class SpectralNorm {
public:
  /// Throws std::invalid_argument for a module without such layers.
  SpectralNorm(torch::nn::Module& module, std::uint64_t seed);

  /// Before each forward pass: gives the layers their normalised weights, of which gradients flow
  /// back to the parameters (u and v count as constants). With `iterate`, in training, one step of
  /// the power iteration first. Not under autocast.
  void apply(bool iterate);

  /// Of each layer's weight, as the power iteration has it now: {name: value}.
  std::map<std::string, double> singular_values() const;

private:
  struct Layer {
    std::string name;
    at::Tensor weight; // the parameter
    at::Tensor* used;  // what the layer's forward() takes
    at::Tensor u;      // [out]
    at::Tensor v;      // [rest]
  };
  std::vector<Layer> layers_;
};

} // namespace troupe::learner
