#include "env/render/cast_renderer.hpp"

#include <hwy/targets.h>

namespace troupe::env {

CastRenderer::CastRenderer(Physics& physics, const PixelOptions& options, PixelLayout layout)
    : Renderer(physics, options, layout),
      caster_(caster_model(physics.compiled()), {.height = options.height,
                                                 .width = options.width,
                                                 .camera = camera_,
                                                 .effects = options.effects,
                                                 .grey = options.grey,
                                                 .layout = layout}) {}

void CastRenderer::draw_colour(std::uint8_t* out) {
  caster_.draw(physics_.model(), physics_.data(), {out, bytes()});
}

void CastRenderer::draw_metres(float* out) {
  caster_.draw_depth(physics_.model(), physics_.data(), {out, pixels()});
}

void CastRenderer::draw_objects(std::int32_t* out) {
  caster_.draw_segmentation(physics_.model(), physics_.data(), {out, 2 * pixels()});
}

std::string CastRenderer::cast_description() {
  const std::int64_t targets = hwy::SupportedTargets();
  return std::string("ray caster, ") + hwy::TargetName(targets & -targets) + " vectors";
}

} // namespace troupe::env
