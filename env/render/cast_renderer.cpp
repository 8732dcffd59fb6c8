#include "env/render/cast_renderer.hpp"

#include <hwy/targets.h>

#include <cstdint>
#include <stdexcept>

namespace troupe::env {

namespace {

/// The instruction sets that this processor has and the kernels are compiled for.
std::int64_t compiled_targets() {
  return hwy::SupportedTargets() & HWY_TARGETS;
}

} // namespace

CastRenderer::CastRenderer(Physics& physics, const PixelOptions& options, PixelLayout layout)
    : Renderer(physics, options, layout),
      caster_(caster_model(physics.compiled()), cast_options()) {}

CastOptions CastRenderer::cast_options() const {
  return {.height = options_.height,
          .width = options_.width,
          .camera = camera_,
          .effects = options_.effects,
          .fog = options_.fog,
          .grey = options_.grey,
          .layout = layout_};
}

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
  const std::int64_t targets = compiled_targets();
  hwy::GetChosenTarget().Update(targets); // SupportedTargets() resets the choice
  return std::string("ray caster, ") + hwy::TargetName(targets & -targets) + " vectors";
}

void draw_with_vectors(const std::string& name) {
  hwy::DisableTargets(0); // enables all of them again
  const std::int64_t supported = compiled_targets();
  std::string names;
  for (int bit = 0; bit < 63; ++bit) { // better targets have lower bits
    const std::int64_t target = std::int64_t{1} << bit;
    if ((supported & target) == 0)
      continue;
    if (name == hwy::TargetName(target)) {
      hwy::DisableTargets(target - 1);
      return;
    }
    names += std::string(names.empty() ? "" : ", ") + hwy::TargetName(target);
  }
  throw std::invalid_argument("vectors: '" + name + "' is not available on this processor; it has "
                              + names);
}

} // namespace troupe::env
