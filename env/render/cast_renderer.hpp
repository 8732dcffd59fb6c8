#pragma once

#include "env/caster/ray_caster.hpp"
#include "env/render/renderer.hpp"

namespace troupe::env {

/// The ray caster (env/caster/) as a Renderer. Needs no OpenGL. May be used on any thread.
class CastRenderer : public Renderer {
public:
  CastRenderer(Physics& physics, const PixelOptions& options,
               PixelLayout layout = PixelLayout::channels_first);

  std::string description() const override { return cast_description(); }

  static std::string cast_description(); // "ray caster, AVX3 vectors"

protected:
  CastOptions cast_options() const;

private:
  void draw_colour(std::uint8_t* out) override;
  void draw_metres(float* out) override;
  void draw_objects(std::int32_t* out) override;

  RayCaster caster_;
};

/// Switches the whole process to other vectors than the processor's best, for measurements and
/// tests: "AVX3", "AVX2", "SSE4", "EMU128" (no vectors) or another of Highway's targets. The
/// pictures stay the same. No other thread may be drawing. Throws std::invalid_argument if the
/// processor or this program does not support them.
void draw_with_vectors(const std::string& name);

} // namespace troupe::env
