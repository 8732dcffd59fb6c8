#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// Normalises pictures for networks: (x / 255 - mean) / standard deviation, per channel.
class PictureNormaliser {
public:
  /// Takes one number for all channels or one per channel. Throws std::invalid_argument naming a
  /// number that is not finite, or a deviation that is not above 0.
  PictureNormaliser(const std::vector<double>& mean, const std::vector<double>& deviation,
                    std::int64_t channels);

  /// Moves its numbers to the device, so that pictures there need no copy from the host.
  void to(at::Device device);

  /// Converts uint8 [batch, channels, height, width] to `type`, in the same memory layout on the
  /// same device; on the CPU in one pass. Input of other types counts as normalised, and is only
  /// converted to `type`.
  at::Tensor operator()(const at::Tensor& pictures, at::ScalarType type) const;

private:
  at::Tensor scale_;  // float64 [channels]
  at::Tensor offset_; // x · scale + offset
};

} // namespace troupe::learner
