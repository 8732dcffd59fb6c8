#pragma once

#include <string>

#include "env/caster/cuda/batch_caster.hpp"
#include "env/render/cast_renderer.hpp"

namespace troupe::env {

/// The ray caster whose colour pictures the first CUDA device draws; depths and segmentations are
/// drawn by the processor. Any thread.
class CudaRenderer final : public CastRenderer {
public:
  /// Also throws std::runtime_error with BatchCaster::unavailable()'s text.
  CudaRenderer(Physics& physics, const PixelOptions& options,
               PixelLayout layout = PixelLayout::channels_first);

  std::string description() const override { return cuda_description(); }

  static std::string cuda_description(); // throws as the constructor does

private:
  void draw_colour(std::uint8_t* out) override;

  BatchCaster batch_; // of one environment
};

} // namespace troupe::env
