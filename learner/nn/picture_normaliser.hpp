#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// Pictures as networks take them: (x / 255 - mean) / standard deviation per channel.
class PictureNormaliser {
public:
  /// One number for all channels, or one each. Throws std::invalid_argument naming a number that is
  /// not finite, or a deviation that is not above 0.
  PictureNormaliser(const std::vector<double>& mean, const std::vector<double>& deviation,
                    std::int64_t channels);

  /// Keeps its numbers on that device, so that pictures there need no copy from the host.
  void to(at::Device device);

  /// uint8 [batch, channels, height, width] -> `type`, in the same memory layout, on the same
  /// device; on the CPU in one pass. What is not uint8 is normalised already and only changes type.
  at::Tensor operator()(const at::Tensor& pictures, at::ScalarType type) const;

private:
  at::Tensor scale_;  // float64 [channels]
  at::Tensor offset_; // x · scale + offset
};

} // namespace troupe::learner
