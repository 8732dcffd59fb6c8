#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "env/make.hpp"
#include "env/physics.hpp"
#include "env/render/gl_context.hpp"

namespace troupe::env {

/// Planes of one colour ([channels, height, width]) or pixels ([height, width, channels]).
enum class PixelLayout : std::uint8_t { channels_first, channels_last };

/// Draws a Physics with MuJoCo's OpenGL renderer. With effects the pictures are those of dm_control
/// (shadows, reflections, 4 samples a pixel); without, none of the three, and up to 128x128 pixels
/// round shapes have half the facets.
/// Belongs to the thread that made it, whose OpenGL context it shares with all others there; see
/// GlContext. The Physics must outlive it. Throws std::invalid_argument (size, camera) or
/// std::runtime_error (no OpenGL).
class Renderer {
public:
  Renderer(Physics& physics, const PixelOptions& options,
           PixelLayout layout = PixelLayout::channels_first);
  ~Renderer();
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  int channels() const { return options_.grey ? 1 : 3; }
  std::size_t bytes() const;

  /// The present state, top row first, into bytes() bytes. Grey is Rec. 601 luma. No allocation.
  void draw(std::span<std::uint8_t> out);

  const GlInfo& gl() const;

private:
  struct Impl;
  Physics& physics_;
  PixelOptions options_;
  PixelLayout layout_;
  std::unique_ptr<Impl> impl_;
};

/// Number of the camera called `camera` (a name, or a number of the model's; -1 is the free
/// camera). Throws std::invalid_argument with the list of cameras.
int find_camera(const Physics& physics, const std::string& camera);

/// Throws std::invalid_argument when height or width is not from 1 to 4096.
void check_pixel_size(const PixelOptions& options);

} // namespace troupe::env
