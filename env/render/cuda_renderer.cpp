#include "env/render/cuda_renderer.hpp"

#include <array>
#include <stdexcept>
#include <utility>

namespace troupe::env {

CudaRenderer::CudaRenderer(Physics& physics, const PixelOptions& options, PixelLayout layout)
    : CastRenderer(physics, options, layout),
      batch_(caster_model(physics.compiled()), 1, cast_options()) {}

std::string CudaRenderer::cuda_description() {
  if (const std::string why = BatchCaster::unavailable(); !why.empty())
    throw std::runtime_error("renderer CASTER_CUDA: no GPU can draw: " + why);
  return "ray caster, CUDA device 0";
}

void CudaRenderer::draw_colour(std::uint8_t* out) {
  const std::array models{&std::as_const(physics_).model()};
  const std::array states{&std::as_const(physics_).data()};
  batch_.draw(models, states, {out, bytes()});
}

} // namespace troupe::env
