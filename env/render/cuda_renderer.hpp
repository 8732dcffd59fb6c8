#pragma once

#include <string>

#include "env/caster/cuda/batch_caster.hpp"
#include "env/render/cast_renderer.hpp"

namespace troupe::env {

/// The ray caster with colour pictures drawn by the first CUDA device. Depths and segmentations are
/// drawn by the processor. May be used on any thread.
class CudaRenderer final : public CastRenderer {
public:
  /// Throws as CastRenderer does, and std::runtime_error with the text of
  /// BatchCaster::unavailable().
  CudaRenderer(Physics& physics, const PixelOptions& options,
               PixelLayout layout = PixelLayout::channels_first);

  std::string description() const override { return cuda_description(); }

  static std::string cuda_description(); // throws as the constructor does

private:
  void draw_colour(std::uint8_t* out) override;

  BatchCaster batch_; // has one environment
};

} // namespace troupe::env
