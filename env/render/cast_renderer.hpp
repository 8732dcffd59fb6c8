#pragma once

#include "env/caster/ray_caster.hpp"
#include "env/render/renderer.hpp"

namespace troupe::env {

/// The ray caster (env/caster/) behind the interface of renderers: no OpenGL, any thread.
class CastRenderer final : public Renderer {
public:
  CastRenderer(Physics& physics, const PixelOptions& options,
               PixelLayout layout = PixelLayout::channels_first);

  std::string description() const override { return cast_description(); }

  static std::string cast_description(); // "ray caster, AVX3 vectors"

private:
  void draw_colour(std::uint8_t* out) override;
  void draw_metres(float* out) override;
  void draw_objects(std::int32_t* out) override;

  RayCaster caster_;
};

} // namespace troupe::env
