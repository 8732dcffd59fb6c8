#pragma once

#include <cstdint>
#include <map>

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// Measures the networks that this thread computes while the probe exists: forward passes show it
/// the activations of their layers. There is at most one probe per thread. Without one, a layer
/// only reads a pointer.
class ActivationProbe {
public:
  ActivationProbe();
  ActivationProbe(const ActivationProbe&) = delete;
  ActivationProbe& operator=(const ActivationProbe&) = delete;
  ~ActivationProbe();
  /// The probe of this thread; null: none.
  static ActivationProbe* active();

  struct Layer {
    std::int64_t units = 0;
    std::int64_t dormant = 0;
    at::Tensor features = {}; // [rows, inputs], of linear layers other than hidden ones
    at::Tensor outputs = {};  // [rows, outputs], of the last layers of an Mlp or SphericalNetwork
  };
  /// Records the units after an activation, [rows, units] or [rows, channels, height, width], of
  /// the layer with this weight. A unit is dormant if the mean of its magnitude over the rows is at
  /// most 0.025 of the mean over the layer's units (Sokar et al. 2023).
  void see_units(const at::Tensor& weight, const at::Tensor& units);
  /// Records the inputs of the linear layer with this weight, [rows, inputs], and its outputs,
  /// [rows, outputs], if it is the last one of an Mlp or SphericalNetwork.
  void see_features(const at::Tensor& weight, const at::Tensor& features,
                    const at::Tensor& outputs = {});

  /// The latest record of the layer with this weight; null: none.
  const Layer* layer(const at::Tensor& weight) const;

private:
  std::map<const void*, Layer> layers_; // keyed by the weights' memory
};

/// Returns the smallest number of singular values of features [rows, units] whose sum is 99 % of
/// the sum of all (Kumar et al. 2021), or 0 if all features are 0.
std::int64_t effective_rank(const at::Tensor& features);

/// Returns the fraction of the numbers whose tanh is above 0.99 or below -0.99.
double tanh_saturation(const at::Tensor& numbers);

} // namespace troupe::learner
