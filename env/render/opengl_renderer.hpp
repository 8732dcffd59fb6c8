#pragma once

#include <memory>

#include "env/render/gl_context.hpp"
#include "env/render/renderer.hpp"

namespace troupe::env {

/// How finely OpenGL draws. The defaults give dm_control's pictures; other values are for
/// measurements against exact shapes.
struct OpenglQuality {
  int slices = 0;            // of round shapes, with half as many stacks; 0: the model's number
  bool multisampling = true; // false: one sample at the pixel's centre
};

/// MuJoCo's OpenGL renderer. With effects, the pictures equal dm_control's bit for bit on the same
/// driver. Without effects, round shapes have half the facets in pictures of up to 128x128 pixels.
/// Depths and segmentations are dm_control's, too, except that the depth of an orthographic camera,
/// which dm_control gets wrong, is in metres.
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

/// Returns, for example, "OpenGL by EGL, device 1 of 2: Mesa, llvmpipe (LLVM 15.0.6, 256 bits)".
std::string describe(const GlInfo& info);

} // namespace troupe::env
