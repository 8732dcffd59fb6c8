#pragma once

#include <memory>

#include "env/render/gl_context.hpp"
#include "env/render/renderer.hpp"

namespace troupe::env {

/// How finely OpenGL draws; 0: as the model says (dm_control's pictures). Others are for
/// measurements against exact shapes.
struct OpenglQuality {
  int slices = 0;            // of round shapes, half as many stacks
  bool multisampling = true; // false: one sample at the pixel's centre
};

/// MuJoCo's OpenGL renderer. With effects the pictures equal those of dm_control bit for bit on the
/// same driver; without, and up to 128x128 pixels, round shapes have half the facets. Depth and
/// segmentation are dm_control's, too; an orthographic camera's depth, which dm_control gets wrong,
/// is in metres here.
class OpenglRenderer final : public Renderer {
public:
  OpenglRenderer(Physics& physics, const PixelOptions& options,
                 PixelLayout layout = PixelLayout::channels_first,
                 const OpenglQuality& quality = {});
  ~OpenglRenderer() override;

  std::string description() const override;
  const GlInfo& gl() const;

private:
  void draw_colour(std::uint8_t* out) override;
  void draw_metres(float* out) override;
  void draw_objects(std::int32_t* out) override;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// "OpenGL by EGL, device 1 of 2: Mesa, llvmpipe (LLVM 15.0.6, 256 bits)"
std::string describe(const GlInfo& info);

} // namespace troupe::env
