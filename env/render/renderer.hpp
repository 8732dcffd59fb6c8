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

/// The kind that RendererKind::automatic stands for.
inline constexpr RendererKind kAutomaticRenderer = RendererKind::caster;

/// Draws a Physics into the caller's buffers, top row first. With effects, pictures have shadows,
/// reflections and 4 samples per pixel, as in dm_control; without effects, none of these.
///
/// opengl_renderer.hpp is MuJoCo's own renderer and exact, cast_renderer.hpp the ray caster, and
/// cuda_renderer.hpp the ray caster on a GPU.
///
/// Not thread-safe. An OpenGL renderer belongs to the thread that made it, and shares its context
/// with all others on that thread (gl_context.hpp). The Physics must outlive the renderer. draw()
/// allocates only on the first call. Every draw_…() throws std::invalid_argument if the buffer has
/// the wrong size.
class Renderer {
public:
  virtual ~Renderer() = default;
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  int height() const { return options_.height; }
  int width() const { return options_.width; }
  int channels() const { return options_.grey ? 1 : 3; }
  std::size_t pixels() const; // per channel
  std::size_t bytes() const { return static_cast<std::size_t>(channels()) * pixels(); }

  /// Draws the current state in colour or as Rec. 601 luma. `out`: bytes() bytes.
  void draw(std::span<std::uint8_t> out);

  /// Writes the distance from the camera along its axis in metres, [height, width]; where there is
  /// nothing, that of the far clipping plane.
  void draw_depth(std::span<float> metres);

  /// Writes which object each pixel shows, [height, width, 2]: its index and type (mjtObj), as in
  /// mjvGeom's objid and objtype and in dm_control; -1, -1 where there is nothing.
  void draw_segmentation(std::span<std::int32_t> out);

  /// For example, "OpenGL by EGL, device 1 of 2: …, llvmpipe" or "ray caster, AVX-512".
  virtual std::string description() const = 0;

protected:
  Renderer(Physics& physics, const PixelOptions& options, PixelLayout layout);

  Physics& physics_;
  PixelOptions options_;
  PixelLayout layout_;
  int camera_; // index; -1 is the free camera

private:
  virtual void draw_colour(std::uint8_t* out) = 0;
  virtual void draw_metres(float* out) = 0;
  virtual void draw_objects(std::int32_t* out) = 0;
};

/// Makes the renderer that the options select. Throws std::invalid_argument if the size or camera
/// is invalid, and std::runtime_error if the renderer is not available on this machine.
std::unique_ptr<Renderer> make_renderer(Physics& physics, const PixelOptions& options,
                                        PixelLayout layout = PixelLayout::channels_first);

/// Describes the renderer that the options select on this thread.
struct RendererInfo {
  std::string description;
  bool slow = false; // OpenGL without a GPU: about a thousand times slower than the physics
};

/// Throws std::runtime_error with one line if the renderer does not work: what was tried and what
/// to install.
RendererInfo renderer_info(const PixelOptions& options);

/// Returns the renderer that the options select; never automatic.
RendererKind renderer_of(const PixelOptions& options);

/// Returns the index of a camera, given its name or index; -1 is the free camera. Throws
/// std::invalid_argument with the list of cameras if there is none.
int find_camera(const Physics& physics, const std::string& camera);

/// Throws std::invalid_argument unless height and width are from 1 to 4096.
void check_pixel_size(const PixelOptions& options);

} // namespace troupe::env
