#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "env/environment_config.hpp"
#include "env/physics.hpp"
#include "env/pixel_layout.hpp"

namespace troupe::env {

/// What RendererKind::automatic is.
inline constexpr RendererKind kAutomaticRenderer = RendererKind::caster;

/// Draws a Physics, into the caller's buffers, top row first. With effects the pictures are those
/// of dm_control (shadows, reflections, 4 samples a pixel); without, none of the three:
/// opengl_renderer.hpp (MuJoCo's own, exact), cast_renderer.hpp (the ray caster) and
/// cuda_renderer.hpp (the same on a GPU). One thread at a time; OpenGL's belongs to the thread that
/// made it, whose context it shares with all others there (gl_context.hpp). The Physics must
/// outlive it. No allocation in draw() after the first. Every draw_…() throws std::invalid_argument
/// when the buffer has another size.
class Renderer {
public:
  virtual ~Renderer() = default;
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  int height() const { return options_.height; }
  int width() const { return options_.width; }
  int channels() const { return options_.grey ? 1 : 3; }
  std::size_t pixels() const; // of a channel
  std::size_t bytes() const { return static_cast<std::size_t>(channels()) * pixels(); }

  /// The present state in colour, or as Rec. 601 luma, bytes() bytes.
  void draw(std::span<std::uint8_t> out);

  /// Distance from the camera along its axis, in metres, [height, width]; where nothing is, that of
  /// the far clipping plane.
  void draw_depth(std::span<float> metres);

  /// What is seen, [height, width, 2]: object number and type (mjtObj), as mjvGeom's objid and
  /// objtype and dm_control's segmentation; -1, -1 where nothing is.
  void draw_segmentation(std::span<std::int32_t> out);

  /// A description: "OpenGL by EGL, device 1 of 2: …, llvmpipe", "ray caster, AVX-512".
  virtual std::string description() const = 0;

protected:
  Renderer(Physics& physics, const PixelOptions& options, PixelLayout layout);

  Physics& physics_;
  PixelOptions options_;
  PixelLayout layout_;
  int camera_; // number; -1: the free one

private:
  virtual void draw_colour(std::uint8_t* out) = 0;
  virtual void draw_metres(float* out) = 0;
  virtual void draw_objects(std::int32_t* out) = 0;
};

/// Throws std::invalid_argument (size, camera) or std::runtime_error (no OpenGL where it draws).
std::unique_ptr<Renderer> make_renderer(Physics& physics, const PixelOptions& options,
                                        PixelLayout layout = PixelLayout::channels_first);

/// The renderer of these options on this thread.
struct RendererInfo {
  std::string description;
  bool slow = false; // OpenGL without a GPU: about a thousand times slower than the physics
};

/// Throws std::runtime_error, one line, when none works: what was tried and what to install.
RendererInfo renderer_info(const PixelOptions& options);

/// The kind that draws: never automatic.
RendererKind renderer_of(const PixelOptions& options);

/// Number of the camera called `camera` (a name, or a number of the model's; -1 is the free
/// camera). Throws std::invalid_argument with the list of cameras.
int find_camera(const Physics& physics, const std::string& camera);

/// Throws std::invalid_argument when height or width is not from 1 to 4096.
void check_pixel_size(const PixelOptions& options);

} // namespace troupe::env
